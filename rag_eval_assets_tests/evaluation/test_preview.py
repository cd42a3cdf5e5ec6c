"""Previews: few rows, short texts, one line each."""

from __future__ import annotations

import pyarrow as pa

from rag_eval_assets.evaluation.preview import CHARACTERS, ROWS, preview


def test_a_long_table_shows_its_first_rows() -> None:
    rows = preview(pa.table({"n": list(range(1000))}))
    assert rows == [{"n": n} for n in range(ROWS)]
    assert ROWS <= 20
    assert preview(pa.table({"n": pa.array([], pa.int64())})) == []


def test_a_text_is_cut_at_80_characters_and_says_so() -> None:
    exact, long = "x" * 80, "y" * 81
    cut = [row["t"] for row in preview(pa.table({"t": [exact, long]}))]
    assert cut == [exact, "y" * 79 + "…"]
    assert CHARACTERS == 80


def test_line_breaks_and_runs_of_spaces_become_one_space() -> None:
    assert preview(pa.table({"t": ["one\n\n two\t\r\nthree "]})) == [{"t": "one two three"}]


def test_numbers_booleans_and_nulls_stay_what_they_are() -> None:
    (row,) = preview(pa.table({"f": [0.5], "i": [3], "b": [True], "n": pa.array([None], pa.string())}))
    assert row == {"f": 0.5, "i": 3, "b": True, "n": None}


def test_a_list_is_shown_by_its_length() -> None:
    passages = pa.array([[{"id": "p", "text": "x" * 5000}]])
    assert preview(pa.table({"passages": passages})) == [{"passages": "1 items"}]
