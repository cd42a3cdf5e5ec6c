"""The one form in which Parquet is written: equal tables give equal bytes, whatever chunks they came in."""

from __future__ import annotations
Equal tables and metadata give equal bytes: compression, row group size and format version are fixed here, and
nothing is written that depends on the time or the machine.
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_ROWS = 2_000
"""Rows of a row group: what a reader has in memory at a time."""

COMPRESSION = "zstd"

_ARROW_SCHEMA_KEY = b"ARROW:schema"  # pyarrow's own footer entry


def write_parquet(path: Path, table: pa.Table, metadata: Mapping[str, str]) -> None:
    """Write `table` to `path`, straight: whoever needs an atomic replacement passes a temporary path and moves it.

    Args:
        path: the file; overwritten where it exists.
        table: the rows; its own schema metadata is replaced.
        metadata: what stands in the footer.
    """
    footer = {key.encode("utf-8"): metadata[key].encode("utf-8") for key in sorted(metadata)}
    schema = table.schema.with_metadata(footer)
    with pq.ParquetWriter(path, schema, compression=COMPRESSION, store_schema=True) as writer:
        for start in range(0, table.num_rows, ROW_GROUP_ROWS):
            # Chunk borders would show in the pages; a row group is therefore made one chunk first.
            group = table.slice(start, ROW_GROUP_ROWS).combine_chunks().cast(schema)
            writer.write_table(group, row_group_size=ROW_GROUP_ROWS)


def read_parquet(path: Path) -> pa.Table:
    """All rows of a file.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet.
    """
    with pq.ParquetFile(path) as file:
        return file.read()


def read_metadata(path: Path) -> dict[str, str]:
    """What `write_parquet` put into the footer."""
    found = pq.read_schema(path).metadata or {}
    return {key.decode("utf-8"): value.decode("utf-8") for key, value in found.items() if key != _ARROW_SCHEMA_KEY}
