"""Where the tables of this code location lie: a local folder, or the bucket that `RAG_EVAL_TABLES` names."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.origin import made_by, require_own_tables
from rag_eval_assets.home import Home
from rag_eval_assets.settings import Settings
from rag_eval_assets.storage.s3_names import S3Bucket, split_uri
from rag_eval_assets.storage.store import LocalStore, TableStore
from rag_eval_assets.suite.load import LoadedSuite

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def open_store(home: Home, suite: LoadedSuite) -> TableStore:
    """The store of a suite's tables.

    Raises:
        ConfigurationError: the settings name a bucket that cannot be used, there are no credentials, or the local
            folder holds the tables of another suite.
    """
    settings = Settings.from_environment()
    if settings.tables is None:
        require_own_tables(home.tables, suite)
        return LocalStore(home.tables, made_by(suite))
    bucket, prefix = tables_place(settings)
    from rag_eval_assets.storage.s3_store import S3Store

    client, credentials = _opened(bucket)
    return S3Store(bucket, prefix, client, credentials, made_by(suite))


def tables_file_system() -> FileSystem:
    """pyarrow's file system with the tables' bucket in it, as the settings tell; for DuckDB, pandas and the like.

    Raises:
        ConfigurationError: `RAG_EVAL_TABLES` is not set, or names a bucket that cannot be used.
    """
    settings = Settings.from_environment()
    if settings.tables is None:
        raise ConfigurationError("RAG_EVAL_TABLES is not set", fix="Read the tables from the local folder")
    from rag_eval_assets.storage.s3 import file_system

    bucket, _ = tables_place(settings)
    return file_system(bucket, *_opened(bucket))


def _opened(bucket: S3Bucket) -> tuple[Any, Any]:
    aws = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    return _open(bucket, aws)


@lru_cache(maxsize=4)
def _open(bucket: S3Bucket, aws: tuple[tuple[str, str], ...]) -> tuple[Any, Any]:
    """Client and credentials of a bucket, kept: every asset and check of a run opens the store, and this takes a third
    of a second. `aws` is the part of the environment that they are made from.
    """
    del aws
    # They load boto3, which only this store needs.
    from rag_eval_assets.orchestration.tables_bucket import TablesBucket
    from rag_eval_assets.storage.s3 import require_credentials

    require_credentials(bucket.profile)
    resource = TablesBucket.of(bucket)
    return resource.get_client(), resource.get_credentials()


def tables_place(settings: Settings) -> tuple[S3Bucket, str]:
    """Bucket and prefix of `RAG_EVAL_TABLES`; raises ConfigurationError where no region is known."""
    from rag_eval_assets.storage.s3 import ambient_region

    name, prefix = split_uri(settings.tables or "")
    region = settings.s3_region or ambient_region(settings.tables_profile)
    if region is None:
        raise ConfigurationError(
            f"no region is known for bucket {name!r} of RAG_EVAL_TABLES", fix="Set RAG_EVAL_S3_REGION or AWS_REGION"
        )
    addressing = settings.s3_addressing or "auto"
    return S3Bucket(name, region, settings.s3_endpoint, addressing, settings.tables_profile), prefix
