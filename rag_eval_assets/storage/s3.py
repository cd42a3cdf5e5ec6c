"""The one place that makes S3 clients and sends requests: what a client may do by itself is decided here.

boto3 and pyarrow's S3 file system take a part of a second to load, and are loaded on first use.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.storage.s3_errors import s3_error
from rag_eval_assets.storage.s3_names import S3Bucket, split_uri

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

CONNECT_SECONDS = 5
READ_SECONDS = 60


def make_session(profile: str | None) -> Any:
    """A boto3 session; raises ConfigurationError where there is no such profile."""
    import boto3
    from botocore.exceptions import ProfileNotFound

    try:
        return boto3.Session(profile_name=profile)
    except ProfileNotFound as error:
        raise ConfigurationError(
            f"AWS profile {profile or os.environ.get('AWS_PROFILE')!r} is in no AWS configuration file",
            fix="Correct its name, or the variable AWS_CONFIG_FILE",
        ) from error


def client_config(bucket: S3Bucket, attempts: int) -> Any:
    """The client's options: `attempts` in all, each with bounded waits."""
    from botocore.config import Config

    return Config(
        region_name=bucket.region,
        s3={"addressing_style": bucket.addressing},
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
    )


def make_client(bucket: S3Bucket, *, attempts: int = 1) -> Any:
    """A client for one bucket that sends what it is told and nothing more.

    With one attempt, the caller sees every answer that was lost, and can tell an object that its own lost attempt
    wrote from somebody else's. The client's search for a bucket's region is off: it would ask HeadBucket.
    """
    client = make_session(bucket.profile).client(
        "s3", endpoint_url=bucket.endpoint, config=client_config(bucket, attempts)
    )
    client.meta.events.register_last("before-parameter-build.s3", _stay_in_the_region)
    return client


def _stay_in_the_region(context: dict[str, Any], **_: Any) -> None:
    context["s3_redirect"] = {**context.get("s3_redirect", {}), "redirected": True}


def ambient_region(profile: str | None) -> str | None:
    """The region that the AWS configuration names: environment variables, then the profile."""
    return os.environ.get("AWS_REGION") or make_session(profile).region_name


def require_credentials(profile: str | None) -> str:
    """Where credentials were found; nothing is sent to S3.

    Raises:
        ConfigurationError: there are none.
    """
    from botocore.exceptions import BotoCoreError

    try:
        credentials = make_session(profile).get_credentials()
    except BotoCoreError as error:
        raise ConfigurationError(f"the AWS credentials cannot be read ({type(error).__name__})") from error
    if credentials is None:
        raise ConfigurationError(
            "no AWS credentials were found",
            fix="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role",
        )
    return str(credentials.method)


def put_file(
    client: Any, bucket: S3Bucket, key: str, path: Path, *, sha256: str, content_type: str, once: bool
) -> None:
    """Put a whole file as one object; S3 refuses it where the bytes that arrive have another checksum.

    Args:
        client: from `make_client`.
        bucket, key: where to.
        path: the file.
        sha256: of the file, 64 hexadecimal digits.
        content_type: stored with the object.
        once: refuse to replace an object (`If-None-Match: *`).

    Raises:
        S3Error: the request failed.
    """
    condition = {"IfNoneMatch": "*"} if once else {}
    with path.open("rb") as body:
        _put(
            client, bucket, key, body, path.stat().st_size, bytes.fromhex(sha256), ContentType=content_type, **condition
        )


def put_bytes(client: Any, bucket: S3Bucket, key: str, content: bytes, *, content_type: str) -> None:
    """Put `content` as one object in the same way, in place of one that is there; raises S3Error."""
    _put(client, bucket, key, content, len(content), hashlib.sha256(content).digest(), ContentType=content_type)


def _put(
    client: Any, bucket: S3Bucket, key: str, body: bytes | BinaryIO, length: int, sha256: bytes, **further: str
) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client.put_object(
            Bucket=bucket.name,
            Key=key,
            Body=body,
            ContentLength=length,
            ChecksumAlgorithm="SHA256",
            ChecksumSHA256=base64.b64encode(sha256).decode("ascii"),
            **further,
        )
    except (BotoCoreError, ClientError) as error:
        raise s3_error(error, "PutObject", bucket, key) from error


def delete(client: Any, bucket: S3Bucket, key: str) -> None:
    """Delete an object, also where there is none; raises S3Error."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client.delete_object(Bucket=bucket.name, Key=key)
    except (BotoCoreError, ClientError) as error:
        raise s3_error(error, "DeleteObject", bucket, key) from error


def head(client: Any, bucket: S3Bucket, key: str) -> str:
    """The entity tag of an object; raises S3Error, with fault NO_KEY where there is none."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return str(client.head_object(Bucket=bucket.name, Key=key)["ETag"])
    except (BotoCoreError, ClientError) as error:
        raise s3_error(error, "GetObject", bucket, key) from error  # HEAD is allowed by that action


def keys_below(client: Any, bucket: S3Bucket, prefix: str) -> list[str]:
    """The keys that begin with `prefix`, in order; raises S3Error."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=prefix)
        return [str(entry["Key"]) for page in pages for entry in page.get("Contents", [])]
    except (BotoCoreError, ClientError) as error:
        raise s3_error(error, "ListBucket", bucket, prefix) from error


def get_bytes(client: Any, bucket: S3Bucket, key: str) -> bytes:
    """A whole object by one request, and so one version of it; raises S3Error."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return client.get_object(Bucket=bucket.name, Key=key)["Body"].read()
    except (BotoCoreError, ClientError) as error:
        raise s3_error(error, "GetObject", bucket, key) from error


def read_object(uri: str, *, region: str | None, endpoint: str | None, addressing: str | None) -> bytes:
    """The bytes of an `s3://` URI, read with the credentials of the environment.

    Raises:
        ConfigurationError: the URI names no object, or no region is known.
        S3Error: the request failed.
    """
    name, key = split_uri(uri)
    known = region or ambient_region(None)
    if known is None:
        raise ConfigurationError(f"no region is known for {uri!r}", fix="Set RAG_EVAL_S3_REGION or AWS_REGION")
    bucket = S3Bucket(name, known, endpoint, "path" if addressing == "path" else "auto")
    return get_bytes(make_client(bucket, attempts=5), bucket, key)


def file_system(bucket: S3Bucket, client: Any, credentials: Any) -> FileSystem:
    """pyarrow's S3 file system for lazy reads, with boto3's credentials as they are now and boto3's endpoint.

    pyarrow would search for credentials by rules of its own, and find others; `AWS_ENDPOINT_URL` and a profile's
    `endpoint_url` it does not know. Temporary credentials run out: make a file system for each read.

    Args:
        bucket: the bucket.
        client: boto3's.
        credentials: boto3's, of a session that is kept, so that they are renewed.
    """
    from pyarrow.fs import S3FileSystem

    frozen = credentials.get_frozen_credentials()
    endpoint = urlsplit(client.meta.endpoint_url)
    if (endpoint.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
        endpoint = (
            None  # pyarrow finds it, and would not place the bucket in a host name of an endpoint that it is told
        )
    return S3FileSystem(
        access_key=frozen.access_key,
        secret_key=frozen.secret_key,
        session_token=frozen.token,
        region=bucket.region,
        endpoint_override=endpoint.netloc if endpoint else None,
        scheme="http" if endpoint and endpoint.scheme == "http" else "https",
        force_virtual_addressing=bucket.addressing == "virtual",
        connect_timeout=CONNECT_SECONDS,
        request_timeout=READ_SECONDS,
    )
