"""The one form in which Parquet is written: equal tables give equal bytes, whatever chunks they came in.

Compression and row group size are fixed here, and nothing is written that depends on the time or the machine.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def column_types(path: Path) -> dict[str, pa.DataType]:
    """Column name to type, in the file's order.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet.
    """
    return {field.name: field.type for field in pq.read_schema(path)}


def iter_rows(path: Path, columns: Sequence[str], batch_rows: int) -> Generator[dict[str, Any]]:
    """The rows as dictionaries of the wanted columns, `batch_rows` of them in memory at a time.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet.
    """
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
            yield from batch.to_pylist()


def is_text(dtype: pa.DataType) -> bool:
    """Whether a column of this type holds text (or nothing but nulls), dictionary-encoded text included."""
    value_type = dtype.value_type if isinstance(dtype, pa.DictionaryType) else dtype
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(test(value_type) for test in tests)
