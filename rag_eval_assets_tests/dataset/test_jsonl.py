"""JSON lines as people and tools really write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.dataset.rows import open_rows
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite

SuiteOver = Callable[..., LoadedSuite]


def questions(path: Path) -> list[str | None]:
    return [row.values["question"] for row in open_rows(path).read(["question"])]


def test_byte_order_mark_windows_line_ends_and_blank_lines_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"question": "a"}\r\n\r\n   \n{"question": "b"}')
    rows = list(open_rows(path).read(["question"]))
    assert [(row.number, row.place, row.values["question"]) for row in rows] == [(0, "line 1", "a"), (1, "line 4", "b")]


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"question": "a\u2028b\u2029c\x85d"}\n', "utf-8")
    assert questions(path) == ["a\u2028b\u2029c\x85d"]


def test_what_is_no_text_becomes_compact_json(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        '{"question": {"b": [1, 2.5], "a": "ä"}}\n{"question": 7}\n{"question": true}\n{"question": [NaN, null]}\n'
    )
    assert questions(path) == ['{"a":"ä","b":[1,2.5]}', "7", "true", "[NaN,null]"]


def test_null_nan_and_an_absent_key_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"question": null}\n{"question": NaN}\n{"question": -Infinity}\n{"other": 1}\n')
    assert questions(path) == [None, None, None, None]


def test_a_key_that_the_first_row_lacks_is_a_column_all_the_same(
    suite_over: SuiteOver, write_jsonl: Callable[..., Path]
) -> None:
    write_jsonl("d.jsonl", {"question": "a"}, {"question": "b", "answer": "B", "context": "C"})
    table = load_examples(suite_over("d.jsonl")).table
    assert table.column("reference_answer").to_pylist() == [None, "B"]
    assert table.column("context").to_pylist() == [None, "C"]


def test_rows_with_lone_surrogates_are_excluded_with_the_reason(suite_over: SuiteOver, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(
        '{"question": "fine"}\n'
        '{"question": "half \\ud83d an emoji"}\n'
        '{"question": "fine", "answer": "\\udc00", "context": "\\udc00"}\n'
        '{"question": "fine", "answer": {"nested": "\\udc00"}}\n'
        '{"question": "a whole one \\ud83d\\ude00"}\n'
    )
    examples = load_examples(suite_over("d.jsonl"))
    assert examples.table.column("question").to_pylist() == ["fine", "a whole one 😀"]
    assert [(excluded.source, excluded.row, excluded.reason) for excluded in examples.excluded] == [
        ("d.jsonl", 1, "lone surrogates in question"),
        ("d.jsonl", 2, "lone surrogates in reference_answer, context"),
        ("d.jsonl", 3, "lone surrogates in reference_answer"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "b"', "data file 'd.jsonl' line 3: invalid JSON ("),
        ("{'question': 'b'}", "data file 'd.jsonl' line 3: invalid JSON ("),
        ('{"question": "b"} {"question": "c"}', "data file 'd.jsonl' line 3: invalid JSON ("),
        ('{"question": ' + "9" * 5000 + "}", "data file 'd.jsonl' line 3: invalid JSON ("),
        ('{"question": ' + "[" * 100_000, "data file 'd.jsonl' line 3: invalid JSON ("),
        ('["question", "b"]', "data file 'd.jsonl' line 3: not a JSON object"),
        ('"question"', "data file 'd.jsonl' line 3: not a JSON object"),
        ("null", "data file 'd.jsonl' line 3: not a JSON object"),
    ],
)
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "d.jsonl").write_text(f'{{"question": "a"}}\n\n{line}\n')
    with pytest.raises(ConfigurationError) as caught:
        questions(tmp_path / "d.jsonl")
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 200


def test_another_encoding_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(b'{"question": "a"}\n{"question": "Z\xfcrich"}\n')
    with pytest.raises(ConfigurationError, match="cannot be read as UTF-8 JSON lines, line 2"):
        questions(tmp_path / "d.jsonl")


def test_an_empty_file_has_no_column(suite_over: SuiteOver, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("\n\n")
    with pytest.raises(ConfigurationError, match=r"'d\.jsonl' has no column for the question .* it has none"):
        load_examples(suite_over("d.jsonl"))
