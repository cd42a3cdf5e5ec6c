"""Hostile inputs that are binary, large, or no files at all: one function each, which makes it at a path.

All are the same at every call. What is small and readable lies in `files/`; what git or an editor would change stands
as bytes in the table of `cases`.
"""

from __future__ import annotations

import codecs
import datetime as dt
import decimal
import gzip
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

ROWS = 3_000
"""Rows of the files whose footer lies: a number whose encoding (two bytes) stands nowhere else in the footer."""

NOT_TEXT: dict[str, pa.Array] = {
    "int64": pa.array([1]),
    "double": pa.array([1.5]),
    "bool": pa.array([True]),
    "date32": pa.array([dt.date(2026, 1, 1)]),
    "timestamp": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    "time64": pa.array([dt.time(12)]),
    "duration": pa.array([dt.timedelta(1)]),
    "decimal128": pa.array([decimal.Decimal("1.50")]),
    "binary": pa.array([b"text"]),
    "fixed_size_binary": pa.array([b"text"], pa.binary(4)),
    "struct": pa.array([{"text": "a"}]),
    "list": pa.array([["a"]]),
    "map": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
    "extension": pa.array([bytes(16)], pa.uuid()),
}
"""Arrow's word for a type to a column of it."""


def not_text(path: Path) -> None:
    """A question of the type that the file is named after."""
    _write(path, question=NOT_TEXT[path.stem])


def _write(path: Path, options: dict[str, Any] | None = None, **columns: Any) -> None:
    pq.write_table(pa.table(columns), path, **(options or {}))


def _bytes(compression: str = "none", **options: Any) -> bytes:
    file = io.BytesIO()
    table = pa.table({"question": [f"question {number} of a file" for number in range(ROWS)]})
    pq.write_table(table, file, compression=compression, use_dictionary=False, **options)
    return file.getvalue()


# Text files.


def latin_1_in_a_later_line(path: Path) -> None:
    # Far behind the first block that a reader decodes.
    path.write_bytes(b"question\n" + b"fine\n" * 20_000 + "Zürich\n".encode("latin-1") + b"fine\n")


def huge_cell_jsonl(path: Path) -> None:
    path.write_text(json.dumps({"question": "q", "answer": "word " * 1_000_000}) + "\n")


def huge_cell_csv(path: Path) -> None:
    path.write_text('question,answer\nq,"' + "word " * 1_000_000 + '"\n')


def huge_question(path: Path) -> None:
    path.write_text(json.dumps({"question": "why " * 250_000}) + "\n")


def huge_ids_twice(path: Path) -> None:
    path.write_text((json.dumps({"id": "i" * 1_000_000, "question": "q"}) + "\n") * 2)


def many_columns_csv(path: Path) -> None:
    names = [f"c{number}" for number in range(20_000)]
    path.write_text(",".join([*names, "question"]) + "\n" + ",".join(["x"] * 20_000 + ["q"]) + "\n")


def many_columns_without_a_question(path: Path) -> None:
    path.write_text(json.dumps({f"c{number}": "x" for number in range(20_000)}) + "\n")


def deep_json(path: Path) -> None:
    path.write_text('{"question": "q"}\n{"question": "q", "answer": ' + "[" * 100_000 + "]" * 100_000 + "}\n")


def deep_json_at_every_depth(path: Path) -> None:
    # Somewhere between here and Python's limit it can be read, but not be written any more.
    lines = [
        '{"question": "q", "answer": ' + '{"a":' * depth + "1" + "}" * depth + "}\n" for depth in range(100, 1_100, 5)
    ]
    path.write_text("".join(lines))


def huge_integer(path: Path) -> None:
    path.write_text('{"question": "q", "answer": ' + "9" * 5_000 + "}\n")


def gzip_jsonl(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"question": "q"}\n', mtime=0))


def zstd_csv(path: Path) -> None:
    path.write_bytes(pa.compress(b"question\nq\n", codec="zstd", asbytes=True))


def workbook(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("[Content_Types].xml"), "<Types/>")
        archive.writestr(zipfile.ZipInfo("xl/workbook.xml"), "<workbook/>")


def arrow_file(path: Path) -> None:
    feather.write_feather(pa.table({"question": ["q"]}), str(path), compression="uncompressed")


# Parquet files.


def plain(path: Path) -> None:
    _write(path, question=["q"], answer=["a"], context=["c"])


def large_string(path: Path) -> None:
    _write(path, question=pa.array(["q", "ü😀"], pa.large_string()))


def string_view(path: Path) -> None:
    _write(path, question=pa.array(["q", "ü😀 longer than what fits beside the length"], pa.string_view()))


def dictionary(path: Path) -> None:
    _write(path, question=pa.array(["q", None, "q", "r"]).dictionary_encode())


def dictionary_large_string(path: Path) -> None:
    _write(path, question=pa.array(["q", "r"], pa.large_string()).dictionary_encode())


def null_columns(path: Path) -> None:
    _write(path, question=["q"], answer=pa.nulls(1), context=pa.nulls(1, pa.string()), id=pa.nulls(1))


def null_question(path: Path) -> None:
    _write(path, question=pa.nulls(3))


def zero_rows(path: Path) -> None:
    _write(path, question=pa.array([], pa.string()))


def no_columns(path: Path) -> None:
    _write(path)


def whole_number_ids(path: Path) -> None:
    _write(path, id=pa.array([2**63 + 1, None], pa.uint64()), question=["q", "r"])


def float_ids(path: Path) -> None:
    _write(path, id=[1.0, 2.0], question=["q", "r"])


def nested_beside_text(path: Path) -> None:
    _write(path, question=["q"], meta=pa.array([{"question": "x"}]), tags=pa.array([["y"]]), vector=pa.array([[0.5]]))


def nested_question(path: Path) -> None:
    _write(path, qa=pa.array([{"question": "q"}]))


def dotted_name(path: Path) -> None:
    _write(path, **{"qa.question": ["q"], "qa.answer": ["a"]})


def columns_twice(path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["question", "question"]), path)


def many_columns(path: Path) -> None:
    _write(path, **{f"c{number}": ["x"] for number in range(2_000)}, question=["q"])


def not_utf8(path: Path) -> None:
    buffers = pa.array([b"fine", b"Z\xfcrich"]).buffers()
    _write(path, question=pa.StringArray.from_buffers(2, *buffers[1:]))


def odd_characters(path: Path) -> None:
    _write(path, question=["a\0b", "a\u2028b\u2029c\x85d", "=SUM(A1)", "\u202eolleh", "\u200b"])


def name_that_is_not_utf8(path: Path) -> None:
    _write(path, quest1on=["q"])
    path.write_bytes(path.read_bytes().replace(b"quest1on", b"quest\xfcon"))


def cut_in_half(path: Path) -> None:
    whole = _bytes()
    path.write_bytes(whole[: len(whole) // 2])


def last_byte_gone(path: Path) -> None:
    path.write_bytes(_bytes()[:-1])


def wrong_magic(path: Path) -> None:
    path.write_bytes(_bytes()[:-4] + b"PAR2")


def footer_longer_than_the_file(path: Path) -> None:
    path.write_bytes(_bytes()[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")


def footer_of_noise(path: Path) -> None:
    whole = _bytes()
    path.write_bytes(whole[:-200] + bytes(range(192)) + whole[-8:])


def encrypted_footer(path: Path) -> None:
    path.write_bytes(b"PARE" + _bytes()[4:-4] + b"PARE")


def encrypted_columns(path: Path) -> None:
    """A magic of plain files in front, as where only columns are encrypted."""
    path.write_bytes(_bytes()[:-4] + b"PARE")


def _lying(path: Path, rows: int, *places: int) -> None:
    """Put `rows` for the number of rows into the footer: 0 the file's, 1 the column's values, -1 the row group's."""
    whole = _bytes(store_schema=False, write_statistics=False, compression="zstd")
    length = int.from_bytes(whole[-8:-4], "little")
    footer, told = whole[-8 - length : -8], _varint(ROWS)
    found = [place for place in range(len(footer)) if footer.startswith(told, place)]
    assert len(found) >= 3
    for place in places:
        footer = footer[: found[place]] + _varint(rows) + footer[found[place] + len(told) :]
    path.write_bytes(whole[: -8 - length] + footer + whole[-8:])


def _varint(number: int) -> bytes:
    """Thrift's compact form of a number that takes two bytes."""
    doubled = number * 2
    return bytes([doubled & 127 | 128, doubled >> 7])


def fewer_rows_in_the_file(path: Path) -> None:
    _lying(path, ROWS - 1_000, 0)


def more_rows_in_the_file(path: Path) -> None:
    _lying(path, ROWS + 1_000, 0)


def fewer_rows_in_the_group(path: Path) -> None:
    _lying(path, ROWS - 1_000, -1)


def fewer_rows_in_file_and_group(path: Path) -> None:
    _lying(path, ROWS - 1_000, 0, -1)


def more_rows_everywhere(path: Path) -> None:
    _lying(path, ROWS + 1_000, 0, 1, -1)


def _half_lost(path: Path, compression: str) -> None:
    """The second half of the pages is zeros, as after a copy that was broken off in a file of full size."""
    whole = bytearray(_bytes(compression))
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    whole[pages // 2 : pages] = bytes(pages - pages // 2)
    path.write_bytes(whole)


def zstd_page_half_lost(path: Path) -> None:
    _half_lost(path, "zstd")


def gzip_page_half_lost(path: Path) -> None:
    _half_lost(path, "gzip")


def snappy_page_half_lost(path: Path) -> None:
    _half_lost(path, "snappy")


def page_unlike_its_checksum(path: Path) -> None:
    path.write_bytes(_bytes(write_page_checksum=True).replace(b"question 7 of", b"question 8 of", 1))


# No files, or none that can be read.


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop_of_links(path: Path) -> None:
    path.symlink_to(path)


def link_to_nothing(path: Path) -> None:
    path.symlink_to("gone.jsonl")


def link_into_a_cache(path: Path) -> None:
    plain(path.with_name("0a1b2c"))
    path.symlink_to("0a1b2c")


def device(path: Path) -> None:
    path.symlink_to(os.devnull)


def without_permission(path: Path) -> None:
    path.write_bytes(b'{"question": "q"}\n')
    path.chmod(0)


def utf_16_without_mark(path: Path) -> None:
    path.write_bytes('{"question": "q"}\n'.encode("utf-16-le"))


def utf_32(path: Path) -> None:
    path.write_bytes(codecs.BOM_UTF32_LE + '{"question": "q"}\n'.encode("utf-32-le"))
