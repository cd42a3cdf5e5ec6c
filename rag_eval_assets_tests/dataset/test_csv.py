"""CSV as spreadsheets really write it."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.dataset.rows import RawRow, open_rows
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite

SuiteOver = Callable[..., LoadedSuite]


def rows_of(path: Path, content: bytes, *columns: str) -> list[RawRow]:
    path.write_bytes(content)
    return list(open_rows(path).read(columns))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "d.csv"


def test_a_byte_order_mark_is_not_part_of_the_first_name(path: Path) -> None:
    assert [row.values for row in rows_of(path, codecs.BOM_UTF8 + b"question\r\na\r\n", "question")] == [
        {"question": "a"}
    ]


def test_a_quoted_cell_may_hold_line_ends_quotes_and_commas(path: Path) -> None:
    rows = rows_of(path, b'id,question\n1,"a\r\nb, ""c"""\n\n2,d\n', "id", "question")
    assert [(row.place, row.values["question"]) for row in rows] == [("line 2", 'a\r\nb, "c"'), ("line 5", "d")]
    assert [row.number for row in rows] == [0, 1]


def test_an_empty_cell_is_no_text(path: Path) -> None:
    assert [row.values["answer"] for row in rows_of(path, b'question,answer\na,\nb,""\nc," "\n', "answer")] == [
        None,
        None,
        " ",
    ]


@pytest.mark.parametrize("row", [b"a", b"a,b,c"])
def test_a_row_of_another_width_is_named_by_its_first_line(path: Path, row: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"'d\.csv' line 5: (1 cell|3 cells), but the first line names 2"):
        rows_of(path, b'question,answer\na,b\n"c\nd",e\n' + row + b"\n", "question")


def test_a_name_that_stands_twice_in_the_header_is_named(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'d\.csv': column 'question' stands twice in the first line"):
        rows_of(path, b"question,answer,question\na,b,c\n", "question")


@pytest.mark.parametrize("content", [b"", b"\n\n", codecs.BOM_UTF8])
def test_an_empty_file_needs_a_header(path: Path, content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"'d\.csv' is empty.*first line must name the columns"):
        rows_of(path, content)


def test_a_header_alone_is_a_data_set_without_examples(suite_over: SuiteOver, path: Path) -> None:
    path.write_text("question,answer\n")
    with pytest.raises(ConfigurationError, match=r"'d\.csv' has a header and no row"):
        load_examples(suite_over("d.csv"))


def test_a_cell_of_a_megabyte_is_read_whole_whatever_limit_is_set(path: Path) -> None:
    csv.field_size_limit(131_072)  # Python's own default, which another library may have restored
    text = "word " * 200_000
    assert [row.values["question"] for row in rows_of(path, f'question\n"{text}"\n'.encode(), "question")] == [text]


def test_nul_characters_stay_in_the_text(path: Path) -> None:
    assert [row.values["question"] for row in rows_of(path, b"question\na\0b\n", "question")] == ["a\0b"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'question\nfine\n"never closed\nmore\n', 3),
        (b'question\n"closed" too early\n', 2),
        (b"question\nfine\n" + "Zürich\n".encode("latin-1") + b"fine\n", 3),
    ],
)
def test_what_is_no_csv_in_utf8_is_named_with_the_line(path: Path, content: bytes, line: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"'d\.csv' cannot be read as UTF-8 CSV, line {line} \("):
        rows_of(path, content, "question")


def test_utf16_is_refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'d\.csv' is UTF-16 text\. Save it as UTF-8"):
        rows_of(path, "question\na\n".encode("utf-16"), "question")


def test_another_separator_shows_in_the_columns_that_are_listed(suite_over: SuiteOver, path: Path) -> None:
    path.write_text("question;answer\na;b\n")
    with pytest.raises(ConfigurationError, match=r"it has 'question;answer'\. Its cells look separated by semicolons"):
        load_examples(suite_over("d.csv"))
