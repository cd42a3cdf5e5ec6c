# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Versions of what lies elsewhere: a branch on the hub, the answer of an address, the listing of a bucket.

The only module that calls huggingface_hub and boto3 for a sensor; their published types are partly unknown.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from typing import Any

from rag_eval_assets.canonical import content_hash, text_hash
from rag_eval_assets.errors import ConfigurationError, InfrastructureError, describe_error
from rag_eval_assets.storage.s3_errors import S3Error, diagnose

SECONDS = 20
"""A sensor's look ends after a minute, whatever it waits for; two such waits fit."""

LONGEST_ANSWER = 1 << 20
"""Bytes of an answer that says a version; what is longer is the corpus itself, or an error."""


def hub_commit(data_set: str, revision: str | None) -> str:
    """The commit that a branch or tag of a data set on the Hugging Face hub stands for now.

    Raises:
        InfrastructureError: the hub cannot be asked, or has no such data set.
    """
    from huggingface_hub import HfApi

    try:
        commit = HfApi().dataset_info(data_set, revision=revision, timeout=SECONDS).sha
    except Exception as error:  # its own errors, its HTTP library's, the system's
        raise InfrastructureError(
            f"the hub does not tell the revision of {data_set!r} ({describe_error(error)})"
        ) from error
    if not commit:
        raise InfrastructureError(f"the hub tells no commit of {data_set!r}")
    return commit


def http_version(url: str, json_pointer: str | None, token_env: str | None) -> str:
    """Hash of what an address answers, or of the part of its JSON that `json_pointer` (RFC 6901) names.

    Raises:
        InfrastructureError: it does not answer with success, or the answer has no such part.
        ConfigurationError: the token's environment variable is not set.
    """
    request = urllib.request.Request(url)
    if token_env is not None:
        token = os.environ.get(token_env)
        if not token:
            raise ConfigurationError(f"environment variable {token_env} is not set", fix="Set it where Dagster runs")
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            body: bytes = answer.read(LONGEST_ANSWER + 1)
    except (OSError, ValueError) as error:
        # The address may hold a secret, so it is not repeated here.
        raise InfrastructureError(f"the corpus version cannot be had ({describe_error(error)})") from error
    if len(body) > LONGEST_ANSWER:
        raise InfrastructureError(f"the corpus version is longer than {LONGEST_ANSWER} bytes")
    if json_pointer is None:
        return text_hash(body.decode("utf-8", "replace"))
    try:
        return content_hash(_part(json.loads(body), json_pointer))
    except (ValueError, LookupError, TypeError) as error:
        raise InfrastructureError(f"the answer has no {json_pointer!r} ({describe_error(error)})") from error


def _part(node: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) else node[name]
    return node


def s3_listing(uri: str) -> Iterator[str]:
    """Key and ETag of every object under `s3://bucket/prefix`, in the order of the keys.

    Address and credentials are those of the environment (`AWS_ENDPOINT_URL`, `AWS_PROFILE`, a role ...).

    Raises:
        S3Error: the bucket cannot be listed; it names the action that was refused.
        InfrastructureError: no object is there.
    """
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    empty = True
    try:
        for page in _s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for entry in page.get("Contents", ()):
                empty = False
                yield f"{entry['Key']}\t{entry['ETag']}"
    except Exception as error:  # boto3's classes are made at run time
        raise S3Error(diagnose(error), "ListBucket", uri) from error
    if empty:
        raise InfrastructureError(f"no object is under {uri!r}")


def _s3_client() -> Any:
    import boto3
    from botocore.config import Config

    limits = Config(connect_timeout=SECONDS / 2, read_timeout=SECONDS, retries={"max_attempts": 2})
    # A session of its own: the shared one is not made for the threads that sensors are looked at in.
    return boto3.Session().client("s3", config=limits)
