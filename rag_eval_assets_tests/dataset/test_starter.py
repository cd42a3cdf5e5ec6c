"""A first suite over somebody's own file: columns under all kinds of names, and what cannot be told is asked for."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.dataset.starter import Starter, make_starter
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import read_suite

Start = Callable[..., Starter]
NONE: dict[str, str | None] = {}
ROW = ["When does the mill grind?", "On Fridays.", "The mill grinds on Fridays."]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Make a suite over a CSV file of one row, whose columns are named as told."""

    def make(names: list[str], row: list[str] = ROW, **named: str | None) -> Starter:
        with (tmp_path / "mine.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, row])
        return make_starter(tmp_path / "mine.csv", tmp_path / "mine.yaml", named=named)

    return make


@pytest.mark.parametrize(
    "names",
    [
        ["question", "answer", "context"],
        ["Question", "Expected answer", "Source text"],
        ["user_input", "reference", "context"],
        ["q", "a", "context"],
        ["input", "expected_output", "passage"],
        [" query", "ground truth", "TEXT"],
        ["no", "question", "context"],
    ],
)
def test_columns_are_told_by_their_names_and_written_down(start: Start, tmp_path: Path, names: list[str]) -> None:
    named = {"reference_answer": "question", "question": "no"} if names[0] == "no" else NONE
    starter = start(names, **named)
    assert starter.columns == dict(zip(("question", "reference_answer", "context"), names, strict=True))
    assert (starter.examples, starter.excluded, starter.documents) == (1, 0, 1)
    (tmp_path / "mine.yaml").write_text(starter.text, encoding="utf-8")
    (row,) = load_examples(read_suite(tmp_path / "mine.yaml")).table.to_pylist()
    assert [row["question"], row["reference_answer"], row["context"]] == ROW


def test_a_usual_name_goes_before_those_of_other_tools(start: Start) -> None:
    assert start(
        ["prompt", "question", "expected_output", "answer", "context"], ["p", *ROW[:1], "e", *ROW[1:]]
    ).columns == {
        "question": "question",
        "reference_answer": "answer",
        "context": "context",
    }


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["ask", "answer", "context"],
            "no column is called like the question; it has 'ask', 'answer', 'context'. Name it: --question COLUMN",
        ),
        (["question", "said", "context"], "called like the reference answer; .* --answer COLUMN"),
        (
            ["question", "answer", "page"],
            "the context; .* --context COLUMN, or give the documents .*: --documents FILE",
        ),
        (["question", "gold", "target"], "'gold' and 'target' could both be the reference answer. Say which: --answer"),
        (["question;answer;context"], "Its cells look separated by semicolons; save it with commas"),
    ],
)
def test_what_cannot_be_told_is_asked_for_by_option(start: Start, names: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        start(names)


def test_semicolons_are_told_where_a_column_is_named_too(start: Start) -> None:
    with pytest.raises(ConfigurationError, match="Its cells look separated by semicolons; save it with commas"):
        start(["question;answer;context"], ["q;a;c"], question="question")


def test_a_named_column_must_be_there(start: Start) -> None:
    with pytest.raises(ConfigurationError, match=r"has no column 'ask' \(--question\); it has 'question', 'a', 'b'"):
        start(["question", "a", "b"], question="ask")


def test_rows_that_could_not_be_run_are_refused_at_once(tmp_path: Path, start: Start) -> None:
    lines = [{"id": "a", "question": "q", "answer": "r", "context": "c"}] * 2
    (tmp_path / "twice.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ConfigurationError, match=r"'a' stands twice: twice\.jsonl line 1 and twice\.jsonl line 2"):
        make_starter(tmp_path / "twice.jsonl", tmp_path / "twice.yaml", named=NONE)
    with pytest.raises(ConfigurationError, match=r"nowhere\.csv' does not exist\. Give a parquet, jsonl or csv file"):
        make_starter(tmp_path / "nowhere.csv", tmp_path / "s.yaml", named=NONE)


def test_ids_that_stand_twice_can_be_left_out(tmp_path: Path) -> None:
    data, suite = tmp_path / "twice.jsonl", tmp_path / "twice.yaml"
    data.write_text(json.dumps({"id": "a", "question": "q", "answer": "r", "context": "c"}) + "\n")
    data.write_text(data.read_text() * 2)
    with pytest.raises(ConfigurationError, match="Make the ids unique, or have the rows numbered: --id ''"):
        make_starter(data, suite, named=NONE)
    suite.write_text(make_starter(data, suite, named={"id": ""}).text)
    assert load_examples(read_suite(suite)).table["example_id"].to_pylist() == ["row-0", "row-1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.txt", b"question,answer,context\nq,a,c\n", r"says no known kind\. Rename it to what it holds: \.csv, "),
        ("d.csv", b"PAR1\x00", r"is parquet\. Rename it, so that it ends in \.parquet"),
        ("d.json", b'[{"question": "q"}]', r"begins with a JSON array\. Write one .* as 'jq -c \.\[\]' does"),
        ("d.csv", b"question,answer,context\n", r"'d\.csv' has a header and no row\. Write the questions below"),
        (
            "d.csv",
            b"question,answer,context\n,a,c\n",
            r"\(1 row has no question\)\. Name the column of the question: --",
        ),
    ],
)
def test_advice_is_about_the_file_and_not_about_a_suite_that_is_not_there_yet(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        make_starter(tmp_path / name, tmp_path / "s.yaml", named=NONE)


def test_a_place_where_no_suite_can_lie_is_told_and_not_the_data_blamed(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("question,answer,context\nq,a,c\n")
    with pytest.raises(
        ConfigurationError, match=r"^folder '/nonexist' does not exist\. Make it, or choose another --outp"
    ):
        make_starter(tmp_path / "d.csv", Path("/nonexist/x.yaml"), named=NONE)
    with pytest.raises(ConfigurationError, match=r"called like a data file\. Name the suite .* --output \S+/d\.yaml"):
        make_starter(tmp_path / "d.csv", tmp_path / "d.csv", named=NONE)


def test_documents_of_their_own_take_the_place_of_contexts(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "asked.csv").write_text("question,answer\nq,a\n")
    (tmp_path / "data" / "pages.csv").write_text("id,text\na,one\nb,two\n")
    suite = tmp_path / "asked.yaml"
    starter = make_starter(
        tmp_path / "data" / "asked.csv", suite, named=NONE, documents=tmp_path / "data" / "pages.csv"
    )
    assert starter.documents == 2
    assert "file: data/asked.csv #" in starter.text and "file: data/pages.csv #" in starter.text
    assert str(tmp_path) not in starter.text


@pytest.mark.parametrize("name", ["yes", "null", "12", "a: b", "# c", "'d\"", "é\u2028", " e "])
def test_any_name_of_a_column_survives_yaml(start: Start, tmp_path: Path, name: str) -> None:
    starter = start(["question", "answer", name], context=name)
    (tmp_path / "mine.yaml").write_text(starter.text, encoding="utf-8")
    assert read_suite(tmp_path / "mine.yaml").suite.datasets[0].columns.context == name
