"""The table store in a bucket: one object per table and run date, put whole, so that no half of one is ever seen.

A table is written to a local temporary file and put with its SHA-256. Nothing is streamed to the final key: what an
interrupted stream leaves there can be read as Parquet. Reads fetch the columns that are asked for.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.parquet import read_metadata, read_parquet, read_with_metadata, write_parquet
from rag_eval_assets.storage.s3 import file_system, get_bytes, head, keys_below, put_file
from rag_eval_assets.storage.s3_errors import Fault, S3Error
from rag_eval_assets.storage.s3_names import S3Bucket
from rag_eval_assets.storage.store import (
    Provenance,
    StoredTable,
    TableKey,
    damaged,
    data_version,
    footer_of,
    missing,
    provenance_of,
)

CONTENT_TYPE = "application/vnd.apache.parquet"
"""As registered: https://www.iana.org/assignments/media-types/application/vnd.apache.parquet"""

_UNREADABLE = (OSError, pa.ArrowException, KeyError, TypeError, ValueError)
_Read = TypeVar("_Read")


class S3Store:
    """A table store in a bucket.

    Args:
        bucket: where.
        prefix: first part of every key, without a slash at its end.
        client: boto3's, which repeats what fails: putting a table twice gives the same table.
        credentials: boto3's, for pyarrow's reads.
        made_by: what the footers say of suite and releases.
    """

    def __init__(
        self, bucket: S3Bucket, prefix: str, client: Any, credentials: Any, made_by: Mapping[str, Any] | None = None
    ) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._client = client
        self._credentials = credentials
        self._made_by = made_by

    def object_key(self, key: TableKey) -> str:
        """The object of `key`."""
        return f"{self.prefix}/{key.path}"

    def write(self, key: TableKey, table: pa.Table, provenance: Provenance) -> StoredTable:
        """Replace the table of `key` by one request; raises S3Error where that fails."""
        version = data_version(table)  # first: it refuses what must not be written, such as NaN
        footer = footer_of(provenance, self._made_by)
        object_key = self.object_key(key)
        with tempfile.TemporaryDirectory(prefix="rag-eval-") as folder:
            path = Path(folder) / "table.parquet"
            try:
                write_parquet(path, table, footer)
                with path.open("rb") as stream:
                    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                size = path.stat().st_size
            except OSError as error:
                raise InfrastructureError(
                    f"table {key.path!r} cannot be written to a temporary file ({error.strerror or error})"
                ) from error
            put_file(self._client, self.bucket, object_key, path, sha256=sha256, content_type=CONTENT_TYPE, once=False)
        return StoredTable(self.bucket.uri(object_key), table.num_rows, size, version)

    def read(self, key: TableKey, columns: Sequence[str] | None = None) -> pa.Table:
        """The table of `key`, or those columns of it; raises InfrastructureError naming the key where there is none."""
        return self._look(key, lambda file: read_parquet(file, columns))

    def provenance(self, key: TableKey) -> Provenance:
        """The provenance of the table of `key`; raises InfrastructureError where there is none."""
        return self._look(key, lambda file: provenance_of(read_metadata(file)))

    def read_with_provenance(self, key: TableKey) -> tuple[pa.Table, Provenance]:
        """Both of one and the same version, even where the table is being replaced; raises as `read` does."""
        table, footer = self._look(key, read_with_metadata)
        try:
            return table, provenance_of(footer)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(key, error) from error

    def exists(self, key: TableKey) -> bool:
        """Whether there is a table of `key`."""
        return self._tag(key) is not None

    def run_dates(self, key: TableKey) -> list[str]:
        """The run dates for which the table of `key` is there, oldest first, whatever `key.run_date` is."""
        folder = self.object_key(key).rsplit("/", 2)[0]
        tables = keys_below(self._client, self.bucket, f"{folder}/run_date=")
        parts = [name.removeprefix(f"{folder}/run_date=").split("/") for name in tables]
        return sorted(part[0] for part in parts if part[1:] == [f"{key.part}.parquet"])

    def _look(self, key: TableKey, look: Callable[[pa.NativeFile], _Read]) -> _Read:
        """What `look` finds in the object, read in parts; by a single request where it was replaced meanwhile."""
        before = self._tag(key)
        if before is None:
            raise missing(key)
        object_key = self.object_key(key)
        try:
            try:
                lazily = file_system(self.bucket, self._client, self._credentials)
                with lazily.open_input_file(f"{self.bucket.name}/{object_key}") as file:
                    found = look(file)
            except _UNREADABLE:
                if self._tag(key) == before:
                    raise
            else:
                if self._tag(key) == before:
                    return found
            with pa.BufferReader(get_bytes(self._client, self.bucket, object_key)) as file:
                return look(file)
        except _UNREADABLE as error:
            raise damaged(key, error) from error

    def _tag(self, key: TableKey) -> str | None:
        try:
            return head(self._client, self.bucket, self.object_key(key))
        except S3Error as error:
            if error.fault is Fault.NO_KEY:
                return None
            raise
