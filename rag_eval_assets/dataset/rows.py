"""Reading raw rows of local files (parquet, JSON lines, CSV) column by column, with errors that name file and row.

A raw row is a mapping of column name to text or None; what the columns mean is decided in `examples` and `corpus`.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from rag_eval_assets.dataset.lookalikes import HEAD_BYTES, other_separator, refuse_lookalike
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.storage.parquet import column_types, is_text, iter_rows
from rag_eval_assets.wording import counted

BATCH_ROWS = 1_000
"""Rows that are in memory as Python objects at a time while a file is read."""

CHECK_FILE = "Check the suite's 'file'"
NAME_FORMAT = "Name it with 'format: parquet', 'jsonl' or 'csv'"
MAP_ANOTHER = "Map another column"

_CSV_QUOTES = "A cell with commas, quotes or line ends stands in quotes, and a quote inside it is written twice"
_SAVE_AS_UTF8 = "Save it as UTF-8; it may be in Windows-1252 or Latin-1"


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
        columns: the columns that it has; for JSON lines, the keys of all rows.
        read: yields the rows with only the wanted columns.
        numbers: column name to type, for typed columns of whole numbers: good as ids, but not as texts.
        nested: column name to what it holds where, for keys of JSON lines that hold lists or objects: good as reference
            answers (their JSON text is compared), but not as anything else.
        hint: what may be the matter where a column is missing.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], Iterator[RawRow]]
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])
    nested: Mapping[str, str] = field(default_factory=dict[str, str])
    hint: str | None = None

    @property
    def shown_columns(self) -> str:
        """Its columns for a message: the first ones where there are many."""
        shown = [shorten(name) for name in self.columns[:20]]
        more = [f"{len(self.columns) - 20} more"] if len(self.columns) > 20 else []
        return ", ".join([*shown, *more]) or "none"

    def require_text(self, columns: Iterable[str]) -> None:
        """Raise ConfigurationError where one of `columns`, all of which are to hold text, holds numbers."""
        for name in columns:
            if name in self.numbers:
                raise _not_text(self.name, name, self.numbers[name])

    def require_flat(self, columns: Iterable[str]) -> None:
        """Raise ConfigurationError where one of `columns` holds lists or objects."""
        for name in columns:
            if name in self.nested:
                raise _not_text(self.name, name, self.nested[name])


def shorten(text: str, most: int = 80) -> str:
    """`text` quoted for a message, cut where it is long: a wrong mapping may have made a whole document an id."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def open_rows(path: Path, kind: str | None = None) -> RowSource:
    """Open a local file as a source of rows.

    Args:
        path: the file.
        kind: `parquet`, `jsonl` or `csv`; by default told by the file's ending.

    Raises:
        ConfigurationError: the file is missing, of unknown kind, or unreadable.
    """
    try:
        problem = None if path.is_file() else _no_file(path)  # before it is opened: a pipe would wait for its writer
        head = b"" if problem else _head(path)
    except OSError as error:  # a folder that may not be entered, a name too long, no permission
        raise _unreadable(path, "a file", error) from error
    if problem is not None:
        raise ConfigurationError(f"data file {str(path)!r} {problem}", fix=CHECK_FILE)
    known = {".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
    kind = kind or known.get(path.suffix.lower())
    refuse_lookalike(path.name, kind, head)
    openers = {"parquet": _open_parquet, "jsonl": _open_jsonl, "csv": _open_csv}
    if kind not in openers:
        raise ConfigurationError(
            f"data file {path.name!r}: ending {path.suffix!r} says no known kind",
            fix=NAME_FORMAT,
        )
    return openers[kind](path)


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder"
    return "is no regular file" if path.exists() else "does not exist"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _open_parquet(path: Path) -> RowSource:
    try:
        types = column_types(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: damaged names
        raise _unreadable(path, "parquet", error) from error
    numbers = {name: str(dtype) for name, dtype in types.items() if pa.types.is_integer(dtype)}

    def read(columns: Sequence[str]) -> Generator[RawRow]:
        for name in columns:
            if not is_text(types[name]) and name not in numbers:
                raise _not_text(path.name, name, str(types[name]))
        try:
            for number, values in enumerate(iter_rows(path, columns, BATCH_ROWS)):
                row = {name: None if value is None else str(value) for name, value in values.items()}
                yield RawRow(number, f"row {number}", row)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, "parquet", error) from error

    return RowSource(path.name, tuple(types), read, numbers)


def _open_jsonl(path: Path) -> RowSource:
    # The whole file: a key that the first row lacks is a column all the same.
    columns: dict[str, None] = {}
    nested: dict[str, str] = {}
    for line, record in _json_lines(path):
        columns.update(dict.fromkeys(record))
        for key, value in record.items():
            if isinstance(value, list | dict):
                nested.setdefault(key, f"{'a list' if isinstance(value, list) else 'an object'} in line {line}")

    def read(wanted: Sequence[str]) -> Generator[RawRow]:
        for number, (line, record) in enumerate(_json_lines(path)):
            try:
                values = {name: _json_text(record.get(name)) for name in wanted}
            except RecursionError as error:  # writing nests a little less deep than reading
                raise ConfigurationError(f"data file {path.name!r} line {line}: JSON nested too deep") from error
            yield RawRow(number, f"line {line}", values)

    return RowSource(path.name, tuple(columns), read, nested=nested)


def _json_lines(path: Path) -> Generator[tuple[int, dict[str, Any]]]:
    """1-based line number and object of every line that is not blank; lines end with `\\n` only (U+2028 is text)."""
    line, raw = 0, b""
    try:
        with path.open("rb") as file:
            for line, raw in enumerate(file, start=1):
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
                if not text.strip():
                    continue
                record: Any = json.loads(text, object_pairs_hook=_unique_keys)
                if not isinstance(record, dict):
                    raise ConfigurationError(f"data file {path.name!r} line {line}: not a JSON object")
                yield line, record
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"UTF-8 JSON lines, line {line}", error, fix=_SAVE_AS_UTF8) from error
    # ValueError: also numbers of thousands of digits. RecursionError: thousands of brackets.
    except (ValueError, RecursionError) as error:
        fix = "Its lines end with CR alone; end them with LF" if b"\r" in raw.rstrip(b"\r\n") else None
        raise ConfigurationError(
            f"data file {path.name!r} line {line}: invalid JSON ({_reason(error)})", fix=fix
        ) from error
    except OSError as error:
        raise _unreadable(path, "JSON lines", error) from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text; a key that stands twice is an error instead of silently the last one."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {shorten(next(key for key in keys if keys.count(key) > 1))} stands twice")
    return record


def _json_text(value: Any) -> str | None:
    """A JSON value as text: strings as they are, null and NaN as None, all else as compact sorted JSON."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, str):
        return value
    # Unlike canonical JSON, this takes NaN and lone surrogates inside a value: they are seen to with the row's text.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _open_csv(path: Path) -> RowSource:
    separator = other_separator(_first_line(path))
    hint = f"Its cells look separated by {separator}; save it with commas" if separator else None

    def reader() -> Generator[tuple[int, list[str]]]:
        """Number of its first line, and cells, of every row that is not empty."""
        csv.field_size_limit(sys.maxsize)  # by default a cell of 128 KiB is an error; the limit is the process's
        line = 1
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                rows = csv.reader(file, strict=True)
                for cells in rows:
                    if cells:
                        yield line, cells
                    line = rows.line_num + 1
        except UnicodeDecodeError as error:  # it reads ahead, so the fault is further down
            raise _unreadable(path, f"UTF-8 CSV, line {_undecodable_line(path)}", error, fix=_SAVE_AS_UTF8) from error
        except (OSError, csv.Error) as error:
            raise _unreadable(path, f"UTF-8 CSV, line {line}", error, fix=hint or _CSV_QUOTES) from error

    header = next(reader(), None)
    if header is None:
        raise ConfigurationError(f"data file {path.name!r} is empty", fix="Its first line must name the columns")
    columns = header[1]
    # Spreadsheets leave empty names behind the last column; nothing can be mapped to them.
    twice = [name for name, count in Counter(columns).items() if count > 1 and name]
    if twice:
        raise ConfigurationError(f"data file {path.name!r}: column {shorten(twice[0])} stands twice in the first line")

    def read(wanted: Sequence[str]) -> Generator[RawRow]:
        for number, (line, cells) in enumerate(reader(), start=-1):
            if number < 0:
                continue
            if len(cells) != len(columns):
                raise ConfigurationError(
                    f"data file {path.name!r} line {line}: {counted(len(cells), 'cell')}, but the first line names "
                    f"{len(columns)}"
                )
            row = dict(zip(columns, cells, strict=True))
            yield RawRow(number, f"line {line}", {name: row[name] or None for name in wanted})

    return RowSource(path.name, tuple(columns), read, hint=hint)


def _first_line(path: Path) -> str:
    return _head(path).decode("utf-8", errors="replace").lstrip("\ufeff").partition("\n")[0]


def _undecodable_line(path: Path) -> int:
    """1-based number of the first line that is no UTF-8 (no byte of a longer character is a line end)."""
    with path.open("rb") as file:
        return next((line for line, raw in enumerate(file, start=1) if not _is_utf8(raw)), 0)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _unreadable(path: Path, kind: str, error: BaseException, fix: str | None = None) -> ConfigurationError:
    return ConfigurationError(f"data file {path.name!r} cannot be read as {kind} ({_reason(error)})", fix=fix)


def _not_text(source: str, column: str, dtype: str) -> ConfigurationError:
    return ConfigurationError(f"data file {source!r}: column {column!r} holds {dtype}, not text", fix=MAP_ANOTHER)


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
