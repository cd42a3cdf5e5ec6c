"""Rows made into examples: columns, ids, exclusions, several files, and the fingerprint of it all."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.dataset.examples import ExampleSet, context_document_id, load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import EVAL_EXAMPLES

SuiteOver = Callable[..., LoadedSuite]
Write = Callable[..., Path]
Rows = list[dict[str, str | None]]

ROWS: Rows = [
    {"question": "Where?", "answer": "Here.", "context": "It is here."},
    {"question": "When?", "answer": None, "context": None},
    {"question": "Who\u2028 ü😀?", "answer": "Nobody", "context": "=SUM(A1)"},
]


def write_rows(path: Path, rows: Rows) -> None:
    """The rows in the format that the file's ending says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def column(examples: ExampleSet, name: str) -> list[Any]:
    return examples.table.column(name).to_pylist()


@pytest.mark.parametrize("file", ["d.parquet", "d.pq", "d.jsonl", "d.ndjson", "d.csv", "d.CSV"])
def test_every_format_gives_the_same_examples(tmp_path: Path, suite_over: SuiteOver, file: str) -> None:
    written = tmp_path / file.lower().replace(".pq", ".parquet").replace(".ndjson", ".jsonl")
    write_rows(written, ROWS)
    written.rename(tmp_path / file)
    examples = load_examples(suite_over(file))
    assert examples.table.schema.equals(EVAL_EXAMPLES.schema, check_metadata=True)
    assert column(examples, "question") == ["Where?", "When?", "Who\u2028 ü😀?"]
    assert column(examples, "reference_answer") == ["Here.", None, "Nobody"]
    assert column(examples, "context") == ["It is here.", None, "=SUM(A1)"]
    assert column(examples, "example_id") == ["row-0", "row-1", "row-2"]
    assert column(examples, "source") == [file] * 3
    assert (examples.name, examples.split, examples.revision, examples.total) == ("d", None, None, 3)


def test_a_format_can_be_named_where_the_ending_says_none(tmp_path: Path, suite_over: SuiteOver) -> None:
    write_rows(tmp_path / "d.jsonl", ROWS)
    (tmp_path / "d.jsonl").rename(tmp_path / "d.txt")
    assert load_examples(suite_over({"file": "d.txt", "format": "jsonl"})).total == 3
    with pytest.raises(ConfigurationError, match=r"'d\.txt': ending '\.txt' says no known kind"):
        load_examples(suite_over("d.txt"))


@pytest.mark.parametrize(
    ("question", "reference"),
    [("question", "reference_answer"), ("input", "expected"), ("question", "answer"), ("question", "reference")],
)
def test_usual_names_are_understood(suite_over: SuiteOver, write_jsonl: Write, question: str, reference: str) -> None:
    write_jsonl("d.jsonl", {"id": "a", question: "Q", reference: "R", "context": "C", "document_id": "D"})
    row = load_examples(suite_over("d.jsonl")).table.to_pylist()[0]
    names = ("example_id", "question", "reference_answer", "context", "context_id")
    assert [row[name] for name in names] == ["a", "Q", "R", "C", "D"]


def test_a_mapping_wins_over_usual_names(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "wrong", "Frage": "Q", "answer": "wrong", "Antwort": "R", "nr": 4})
    mapping = {"question": "Frage", "reference_answer": "Antwort", "id": "nr"}
    row = load_examples(suite_over({"file": "d.jsonl", "columns": mapping})).table.to_pylist()[0]
    assert (row["example_id"], row["question"], row["reference_answer"]) == ("4", "Q", "R")


def test_a_missing_column_lists_what_is_there(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"prompt": "Q", "gold": "R"})
    with pytest.raises(ConfigurationError) as caught:
        load_examples(suite_over("d.jsonl"))
    assert str(caught.value) == (
        "data file 'd.jsonl' has no column for the question (looked for question, input); it has 'prompt', 'gold'. "
        "Map it under 'columns' in the suite"
    )
    with pytest.raises(ConfigurationError, match=r"no column 'promt' \(columns\.question\); it has 'prompt', 'gold'"):
        load_examples(suite_over({"file": "d.jsonl", "columns": {"question": "promt"}}))


def test_competing_usual_names_must_be_decided(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "Q", "answer": "A", "expected": "E"})
    with pytest.raises(ConfigurationError, match="'answer' and 'expected' could both be the reference_answer"):
        load_examples(suite_over("d.jsonl"))
    decided = {"file": "d.jsonl", "columns": {"reference_answer": "expected"}}
    assert column(load_examples(suite_over(decided)), "reference_answer") == ["E"]


def test_a_missing_file_is_named(suite_over: SuiteOver, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"data file '{tmp_path}/gone\.csv' does not exist"):
        load_examples(suite_over("gone.csv"))
    with pytest.raises(ConfigurationError, match=r"cannot be read"):
        load_examples(suite_over("x" * 5000 + ".csv"))


def test_rows_without_a_question_are_counted_and_not_asked(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl(
        "d.jsonl",
        {"question": "a"},
        {"question": None, "answer": None},
        {"question": " \u00a0\n"},
        {},
        {"question": "b"},
    )
    examples = load_examples(suite_over("d.jsonl"))
    assert column(examples, "example_id") == ["row-0", "row-4"]
    assert [(excluded.row, excluded.reason) for excluded in examples.excluded] == [
        (1, "no question"),
        (2, "no question"),
        (3, "no question"),
    ]
    assert examples.facts()["excluded"][0] == {"source": "d.jsonl", "row": 1, "reason": "no question"}


def test_a_data_set_without_any_question_is_a_fault(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": None}, {"question": ""})
    with pytest.raises(ConfigurationError, match=r"hold no example \(2 rows have no question\)"):
        load_examples(suite_over("d.jsonl"))


def test_what_stands_in_a_text_is_kept_as_it_is(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "  Q\n", "answer": "", "context": " "})
    row = load_examples(suite_over("d.jsonl")).table.to_pylist()[0]
    assert (row["question"], row["reference_answer"], row["context"]) == ("  Q\n", "", " ")


def test_ids_may_be_any_text_and_gaps_are_numbered(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl(
        "d.jsonl", {"id": "ü/😀 1", "question": "a"}, {"id": None, "question": "b"}, {"id": "", "question": "c"}
    )
    assert column(load_examples(suite_over("d.jsonl")), "example_id") == ["ü/😀 1", "row-1", "row-2"]


def test_an_id_that_stands_twice_names_both_places(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("a.jsonl", {"id": "x", "question": "a"}, {"id": "y", "question": "b"})
    write_jsonl("b.jsonl", {"id": "z", "question": "a"}, {"id": "y", "question": "b"})
    with pytest.raises(ConfigurationError, match=r"'y' stands twice: a\.jsonl line 2 and b\.jsonl line 2"):
        load_examples(suite_over("a.jsonl", "b.jsonl"))


def test_a_column_that_is_null_is_not_looked_for_and_ids_are_then_numbers(
    suite_over: SuiteOver, write_jsonl: Write
) -> None:
    row = {"id": "x", "question": "a", "answer": "b", "context": "c"}
    write_jsonl("d.jsonl", row, row)
    with pytest.raises(ConfigurationError, match=r"numbered: 'columns: \{id: null\}' in the suite"):
        load_examples(suite_over("d.jsonl"))
    numbered = load_examples(suite_over({"file": "d.jsonl", "columns": {"id": None, "reference_answer": None}}))
    assert column(numbered, "example_id") == ["row-0", "row-1"]
    assert column(numbered, "reference_answer") == [None, None]
    with pytest.raises(ConfigurationError, match=r"'columns: \{question: null\}' leaves out the question, which"):
        load_examples(suite_over({"file": "d.jsonl", "columns": {"question": None}}))


def test_rows_that_are_asked_without_reference_or_context_are_counted(
    suite_over: SuiteOver, write_jsonl: Write
) -> None:
    whole = {"question": "a", "answer": "b", "context": "c"}
    write_jsonl("d.jsonl", whole, {**whole, "answer": " "}, {**whole, "context": None}, {"question": "a"})
    assert load_examples(suite_over("d.jsonl")).gaps() == [
        "2 rows without a reference answer: asked, but not scored",
        "2 rows without a context: asked, but not judged for retrieval",
    ]
    write_jsonl("d.jsonl", whole, {"question": "a", "answer": "b", "context_id": "c"})
    assert load_examples(suite_over("d.jsonl")).gaps() == []


def test_equal_questions_are_two_examples(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "a"}, {"question": "a"})
    assert column(load_examples(suite_over("d.jsonl")), "example_id") == ["row-0", "row-1"]


def test_files_are_merged_in_order_with_ids_that_tell_them_apart(suite_over: SuiteOver, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for place, question in (("b.jsonl", "first"), ("a.csv", "second"), ("sub/b.jsonl", "third"), ("b.csv", "fourth")):
        write_rows(tmp_path / place, [{"question": question}])
    data_sets = ["b.jsonl", {"file": "a.csv", "name": "second set", "split": "dev"}, "sub/b.jsonl", "b.csv"]
    examples = load_examples(suite_over(*data_sets))
    assert column(examples, "question") == ["first", "second", "third", "fourth"]
    assert column(examples, "example_id") == ["b-row-0", "a-row-0", "b~2-row-0", "b~3-row-0"]
    assert (examples.name, examples.split) == ("b + second set", "dev")


def test_one_entry_may_list_files_which_share_columns_conditions_and_limit(
    suite_over: SuiteOver, write_jsonl: Write
) -> None:
    write_jsonl("b.jsonl", {"q": "first", "lang": "en"}, {"q": "zweite", "lang": "de"})
    write_jsonl("a.jsonl", {"q": "third", "lang": "en"}, {"q": "fourth", "lang": "en"})
    shared = {"columns": {"question": "q"}, "where": {"lang": "en"}, "limit": 2}
    examples = load_examples(suite_over({"file": ["b.jsonl", "a.jsonl"], **shared}))
    assert column(examples, "question") == ["first", "third"]
    assert column(examples, "example_id") == ["b-row-0", "a-row-0"]
    assert examples.name == "b + a"


def test_an_id_that_stands_in_two_files_of_one_entry_names_both(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("a.jsonl", {"id": "x", "question": "a"})
    (write_jsonl("b.jsonl").parent / "b.csv").write_text("id,question\nw,b\nx,c\n")
    with pytest.raises(ConfigurationError, match=r"'x' stands twice: a\.jsonl line 1 and b\.csv line 3"):
        load_examples(suite_over({"file": ["a.jsonl", "b.csv"]}))


def test_a_limit_takes_the_first_examples_and_still_knows_how_many_there_are(
    suite_over: SuiteOver, tmp_path: Path
) -> None:
    write_rows(tmp_path / "d.jsonl", ROWS)
    limited, all_of_them = (load_examples(suite_over("d.jsonl"), limit) for limit in (2, None))
    assert (limited.table.num_rows, limited.total) == (2, 3)
    assert limited.table.equals(all_of_them.table.slice(0, 2))
    assert limited.fingerprint != all_of_them.fingerprint


def test_the_fingerprint_is_about_the_rows_and_not_about_the_file(suite_over: SuiteOver, tmp_path: Path) -> None:
    fingerprints: set[str] = set()
    for name in ("d.jsonl", "other.csv", "third.parquet"):
        write_rows(tmp_path / name, ROWS)
        fingerprints.add(load_examples(suite_over(name)).fingerprint)
    assert len(fingerprints) == 1


@pytest.mark.parametrize(
    "change",
    [
        [{**ROWS[0], "question": "Where ?"}, *ROWS[1:]],
        [{**ROWS[0], "answer": None}, *ROWS[1:]],
        [{**ROWS[0], "context": "It is here"}, *ROWS[1:]],
        [{**ROWS[0], "answer": "It is here.", "context": "Here."}, *ROWS[1:]],
        ROWS[::-1],
        ROWS[:2],
        [*ROWS, ROWS[0]],
    ],
    ids=["question", "reference", "context", "exchanged", "order", "fewer", "more"],
)
def test_the_fingerprint_sees_every_change(suite_over: SuiteOver, tmp_path: Path, change: Rows) -> None:
    write_rows(tmp_path / "d.jsonl", ROWS)
    before = load_examples(suite_over("d.jsonl")).fingerprint
    write_rows(tmp_path / "d.jsonl", change)
    assert load_examples(suite_over("d.jsonl")).fingerprint != before


def test_a_missing_reference_and_an_empty_one_are_two_different_rows(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "a", "answer": None}, {"question": "a", "answer": ""})
    assert len(set(column(load_examples(suite_over("d.jsonl")), "row_sha256"))) == 2


def test_contexts_have_document_ids_only_where_they_are_the_corpus(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", *[{"question": "q", "context": text} for text in ("one", "two", "one", None, " ")])
    with_contexts = load_examples(suite_over("d.jsonl", corpus={"source": "contexts"}))
    one, two = context_document_id("one"), context_document_id("two")
    assert column(with_contexts, "context_id") == [one, two, one, None, None]
    assert one != two
    assert column(load_examples(suite_over("d.jsonl")), "context_id") == [None] * 5
