"""The one form in which Parquet is written: equal tables give equal bytes, whatever chunks they came in.

Compression and row group size are fixed here, and nothing is written that depends on the time or the machine.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

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


def read_parquet(source: Path | pa.NativeFile, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a file; of the wanted columns alone, nothing else is fetched from where it lies.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet.
    """
    # Fetched ahead from afar alone: of a file here, that would be in memory beside the rows.
    with pq.ParquetFile(source, pre_buffer=not isinstance(source, Path)) as file:
        # In this thread alone: each other one would keep memory of its own from then on, a multiple of small tables.
        return file.read(columns=None if columns is None else list(columns), use_threads=False)


def read_with_metadata(opened: BinaryIO | pa.NativeFile) -> tuple[pa.Table, dict[str, str]]:
    """Rows and footer of an opened file: of one and the same version, even where the file is being replaced.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet.
    """
    with pq.ParquetFile(opened, pre_buffer=True) as file:
        return file.read(), _own_metadata(file.schema_arrow.metadata)


def read_metadata(source: Path | pa.NativeFile) -> dict[str, str]:
    """What `write_parquet` put into the footer."""
    return _own_metadata(pq.read_schema(source).metadata)


def _own_metadata(found: Mapping[bytes, bytes] | None) -> dict[str, str]:
    pairs = (found or {}).items()
    return {key.decode("utf-8"): value.decode("utf-8") for key, value in pairs if key != _ARROW_SCHEMA_KEY}


def column_types(path: Path) -> dict[str, pa.DataType]:
    """Column name to type, in the file's order.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet, or two columns have one name.
    """
    schema = pq.read_schema(path)
    types = {field.name: field.type for field in schema}
    if len(types) < len(schema):
        twice = next(name for name, count in Counter(schema.names).items() if count > 1)
        raise pa.ArrowInvalid(f"column {twice!r} stands twice")
    return types


def iter_rows(path: Path, columns: Sequence[str], batch_rows: int) -> Generator[dict[str, Any]]:
    """The rows as dictionaries of the wanted columns, all of them flat; `batch_rows` are in memory at a time.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is no Parquet, or (after the last row) its footer says other numbers of rows than there are.
    """
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        footer, read = file.metadata, 0
        groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
        for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
            read += batch.num_rows
            yield from batch.to_pylist()
        # The library stops at the row group's count, be there more values or fewer. Only now, since looking at a column
        # whose entry in the footer is damaged ends the process, while reading it raises.
        wanted = [index for index in range(footer.num_columns) if footer.schema.column(index).path in columns]
        values = [sum(group.column(index).num_values for group in groups) for index in wanted]
        counts = {footer.num_rows, sum(group.num_rows for group in groups), read, *values}
        if len(counts) > 1:
            raise pa.ArrowInvalid(f"its footer speaks of {' and of '.join(map(str, sorted(counts)))} rows")


def is_text(dtype: pa.DataType) -> bool:
    """Whether a column of this type holds text (or nothing but nulls), dictionary-encoded text included."""
    value_type = dtype.value_type if isinstance(dtype, pa.DictionaryType) else dtype
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(test(value_type) for test in tests)
