"""What a bucket, an endpoint, an environment and an `s3://` place may look like, told before anything is sent to them.

The types are used by the suite file and by the `RAG_EVAL_*` settings alike. Nothing here imports an S3 client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from rag_eval_assets.errors import ConfigurationError

ENV_PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}$"
"""Form of an environment's label; it is the first part of a report's key."""

ENV_RULE = "1 to 32 lower-case letters, digits and hyphens, no hyphen first"

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, general purpose buckets
_RESERVED_BEGINNINGS = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_ENDINGS = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{1,39}")
_PREFIX = re.compile(r"[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*")

Addressing = Literal["auto", "path", "virtual"]
"""Where the bucket's name stands in the URL: in the path, in the host name, or as the client finds right."""


def check_env(name: str) -> str:
    """`name` where it is an environment's label; raises PydanticCustomError."""
    if not re.fullmatch(ENV_PATTERN.strip("^$"), name):
        raise PydanticCustomError("env", "is no label of an environment ({rule})", {"rule": ENV_RULE})
    return name


def check_bucket(name: str) -> str:
    """`name` where S3 takes it as the name of a general purpose bucket; raises PydanticCustomError."""
    reason = None
    if not _BUCKET.fullmatch(name) or ".." in name:
        reason = "3 to 63 lower-case letters, digits, dots and hyphens, beginning and ending with a letter or digit"
    elif _is_address(name):
        reason = "it must not look like an IP address"
    elif name.startswith(_RESERVED_BEGINNINGS) or name.endswith(_RESERVED_ENDINGS):
        reason = "that beginning or ending is reserved by S3"
    if reason:
        raise PydanticCustomError("bucket", "is no name of a bucket ({reason})", {"reason": reason})
    return name


def check_region(name: str) -> str:
    """`name` where it looks like a region, such as eu-central-1; raises PydanticCustomError."""
    if not _REGION.fullmatch(name):
        raise PydanticCustomError("region", "is no name of a region (such as eu-central-1)")
    return name


def check_endpoint(url: str) -> str:
    """`url` where it is http(s)://host[:port] and nothing more; raises PydanticCustomError."""
    try:
        parts = urlsplit(url)
        bad = parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None
        bad = bad or parts.path not in ("", "/") or bool(parts.query or parts.fragment) or parts.port == 0
    except ValueError:  # a port that is no number
        bad = True
    if bad:
        raise PydanticCustomError("endpoint", "is no endpoint (http or https, host, perhaps a port, and nothing more)")
    return url.rstrip("/")


def check_place(uri: str) -> str:
    """`uri` where it is s3://bucket/prefix; raises PydanticCustomError."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    if not uri.startswith("s3://") or not _PREFIX.fullmatch(prefix) or ".." in prefix.split("/"):
        raise PydanticCustomError("place", "is no place on S3 (s3://<bucket>/<prefix>, no slash at the end)")
    check_bucket(bucket)
    return uri


Env = Annotated[str, AfterValidator(check_env)]
Bucket = Annotated[str, AfterValidator(check_bucket)]
Region = Annotated[str, AfterValidator(check_region)]
Endpoint = Annotated[str, AfterValidator(check_endpoint)]
PlaceUri = Annotated[str, AfterValidator(check_place)]


@dataclass(frozen=True)
class S3Bucket:
    """A bucket and how it is reached.

    Attributes:
        name: of the bucket.
        region: that requests are signed for.
        endpoint: URL of another service than AWS; None for AWS.
        addressing: where the bucket's name stands in the URL.
        profile: of the AWS configuration files, for the credentials; None for the usual search.
    """

    name: str
    region: str
    endpoint: str | None = None
    addressing: Addressing = "auto"
    profile: str | None = None

    def uri(self, key: str) -> str:
        """`s3://<bucket>/<key>`."""
        return f"s3://{self.name}/{key}"


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and key of an `s3://` URI; raises ConfigurationError where it has no key, or S3 knows no such bucket."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not bucket or not key:
        raise ConfigurationError(f"{uri!r} names no object", fix="Give s3://<bucket>/<key>")
    try:
        return check_bucket(bucket), key
    except PydanticCustomError as error:
        raise ConfigurationError(f"{bucket!r} of {uri!r} {error.message()}", fix="Give s3://<bucket>/<key>") from error


def _is_address(name: str) -> bool:
    try:
        IPv4Address(name)
    except AddressValueError:
        return False
    return True
