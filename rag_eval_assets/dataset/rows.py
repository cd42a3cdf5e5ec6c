"""Reading raw rows of local files (parquet, JSON lines, CSV) column by column, with errors that name file and row.

A raw row is a mapping of column name to text or None; what the columns mean is decided in `examples` and `corpus`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rag_eval_assets.canonical import canonical_json
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.storage.parquet import column_types, is_text, iter_rows

BATCH_ROWS = 1_000
"""Rows that are in memory at a time while a parquet file is read."""


@dataclass(frozen=True)
class RawRow:
    """One row of a source.

    Attributes:
        number: 0-based position among the rows of the source.
        place: where a person finds it, such as `line 7` or `row 6`.
        values: column name to text; None where the row has none.
    """

    number: int
    place: str
    values: dict[str, str | None]


@dataclass(frozen=True)
class RowSource:
    """A readable source of rows.

    Attributes:
        name: what the report calls it (a file name, never a path).
        columns: the columns that it has; for JSON lines, those of its first row.
        read: yields the rows with only the wanted columns.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], Iterator[RawRow]]


def open_rows(path: Path, kind: str | None = None) -> RowSource:
    """Open a local file as a source of rows.

    Args:
        path: the file.
        kind: `parquet`, `jsonl` or `csv`; by default told by the file's ending.

    Raises:
        ConfigurationError: the file is missing, of unknown kind, or unreadable.
    """
    if not path.is_file():
        raise ConfigurationError(f"data file {str(path)!r} does not exist", fix="Check the suite's 'file'")
    known = {".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
    kind = kind or known.get(path.suffix.lower())
    openers = {"parquet": _open_parquet, "jsonl": _open_jsonl, "csv": _open_csv}
    if kind not in openers:
        raise ConfigurationError(
            f"data file {path.name!r}: ending {path.suffix!r} says no known kind",
            fix="Name it with 'format: parquet', 'jsonl' or 'csv'",
        )
    return openers[kind](path)


def _open_parquet(path: Path) -> RowSource:
    try:
        types = column_types(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, "parquet", error) from error

    def read(columns: Sequence[str]) -> Generator[RawRow]:
        for name in columns:
            if not is_text(types[name]) and not (name == "id" and pa.types.is_integer(types[name])):
                raise ConfigurationError(
                    f"data file {path.name!r}: column {name!r} holds {types[name]}, not text", fix="Map another column"
                )
        try:
            for number, values in enumerate(iter_rows(path, columns, BATCH_ROWS)):
                row = {name: None if value is None else str(value) for name, value in values.items()}
                yield RawRow(number, f"row {number}", row)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, "parquet", error) from error

    return RowSource(path.name, tuple(types), read)


def _open_jsonl(path: Path) -> RowSource:
    first = next(_json_lines(path), None)
    columns = tuple(first[1]) if first else ()

    def read(wanted: Sequence[str]) -> Generator[RawRow]:
        for number, (line, record) in enumerate(_json_lines(path)):
            values = {name: _json_text(record.get(name)) for name in wanted}
            yield RawRow(number, f"line {line}", values)

    return RowSource(path.name, columns, read)


def _json_lines(path: Path) -> Generator[tuple[int, dict[str, Any]]]:
    """1-based line number and object of every line that is not blank; lines end with `\\n` only (U+2028 is text)."""
    try:
        with path.open("rb") as file:
            for line, raw in enumerate(file, start=1):
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
                if not text.strip():
                    continue
                record: Any = json.loads(text)
                if not isinstance(record, dict):
                    raise ConfigurationError(f"data file {path.name!r} line {line}: not a JSON object")
                yield line, record
    except UnicodeDecodeError as error:
        raise _unreadable(path, "UTF-8 JSON lines", error) from error
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"data file {path.name!r} line {line}: invalid JSON ({error.msg})") from error  # pyright: ignore[reportPossiblyUnboundVariable]
    except OSError as error:
        raise _unreadable(path, "JSON lines", error) from error


def _json_text(value: Any) -> str | None:
    """A JSON value as text: strings as they are, null and NaN as None, all else as compact sorted JSON."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, str) else canonical_json(value).decode("utf-8")


def _open_csv(path: Path) -> RowSource:
    def reader() -> Generator[tuple[int, list[str]]]:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                rows = csv.reader(file, strict=True)
                for cells in rows:
                    if cells:
                        yield rows.line_num, cells
        except (UnicodeDecodeError, OSError, csv.Error) as error:
            raise _unreadable(path, "UTF-8 CSV", error) from error

    header = next(reader(), None)
    if header is None:
        raise ConfigurationError(f"data file {path.name!r} is empty", fix="Its first line must name the columns")
    columns = header[1]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ConfigurationError(f"data file {path.name!r}: column {twice[0]!r} stands twice in the first line")

    def read(wanted: Sequence[str]) -> Generator[RawRow]:
        for number, (line, cells) in enumerate(reader(), start=-1):
            if number < 0:
                continue
            if len(cells) != len(columns):
                raise ConfigurationError(
                    f"data file {path.name!r} line {line}: {len(cells)} cells, but the first line names {len(columns)}"
                )
            row = dict(zip(columns, cells, strict=True))
            yield RawRow(number, f"line {line}", {name: row[name] or None for name in wanted})

    return RowSource(path.name, tuple(columns), read)


def _unreadable(path: Path, kind: str, error: BaseException) -> ConfigurationError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return ConfigurationError(f"data file {path.name!r} cannot be read as {kind} ({reason})")
