"""A score table has one row per answer, in the answers' order, whatever became of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.progress import SILENT, LogReporter
from rag_eval_assets.scoring.base import Advance, Pair, PairScore, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.scoring.table import score_table
from rag_eval_assets.tables import BERTSCORE, EVAL_EXAMPLES, GENERATED_ANSWERS, SENTENCE_COSINE

REFERENCES = {"a": "The library opens at nine.", "b": None, "c": "  ", "d": "Six books."}
ANSWERS: list[tuple[str, int, str, str | None]] = [
    ("d", 0, "ok", "Six books at a time."),
    ("a", 0, "ok", "It opens at 9 a.m."),
    ("b", 0, "ok", "Some answer."),
    ("c", 0, "ok", "Some answer."),
    ("a", 1, "error", None),
    ("a", 2, "invalid_text", "broken \ufffd"),
    ("a", 3, "empty", None),
    ("a", 4, "empty", "\n"),
    ("a", 5, "ok", "\u200b"),
    ("d", 1, "ok", "word " * 300),
]
STATUSES = [
    "scored",
    "scored",
    "no_reference",
    "empty_reference",
    "target_error",
    "invalid_text",
    "no_answer",
    "empty_answer",
    "untokenizable",
    "scored",
]


def examples(references: dict[str, str | None]) -> pa.Table:
    rows = [
        {
            "example_id": example_id,
            "question": "?",
            "reference_answer": reference,
            "source": "rows.jsonl",
            "source_row": number,
            "row_sha256": "0" * 64,
        }
        for number, (example_id, reference) in enumerate(references.items())
    ]
    return pa.Table.from_pylist(rows, schema=EVAL_EXAMPLES.schema)


def answers(rows: list[tuple[str, int, str, str | None]]) -> pa.Table:
    keys = ("example_id", "trial", "status", "answer")
    return pa.Table.from_pylist([dict(zip(keys, row, strict=True)) for row in rows], schema=GENERATED_ANSWERS.schema)


class LengthScorer:
    """Scores the length of the answer; remembers how many pairs each call had."""

    name = "sentence_cosine"
    code_version = "1"
    spec = SENTENCE_COSINE

    def __init__(self) -> None:
        self.calls: list[int] = []

    def for_references(self, references: Iterable[Any]) -> LengthScorer:
        return self

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        from rag_eval_assets.status import ScoreStatus

        self.calls.append(len(pairs))
        advance(len(pairs))
        return [PairScore(ScoreStatus.SCORED, values={"cosine": len(pair.candidate or "") / 1e6}) for pair in pairs]

    def describe(self) -> dict[str, Any]:
        return {}


def test_every_answer_has_its_row_with_the_status_that_it_deserves(cosine: SentenceCosine) -> None:
    table = score_table(cosine, examples(REFERENCES), answers(ANSWERS), SILENT)
    assert table.schema.equals(SENTENCE_COSINE.schema, check_metadata=True)
    rows = table.to_pylist()
    assert [(row["example_id"], row["trial"]) for row in rows] == [answer[:2] for answer in ANSWERS]
    assert [row["status"] for row in rows] == STATUSES
    assert [row["cosine"] is not None for row in rows] == [status == "scored" for status in STATUSES]
    assert [row["truncated"] for row in rows] == [False] * 9 + [True]
    assert rows[8]["detail"] == "the candidate holds no token"


def test_values_are_those_of_the_answer_and_its_own_example(bertscore: BertScore) -> None:
    table = score_table(bertscore, examples(REFERENCES), answers(ANSWERS), SILENT)
    assert table.schema.equals(BERTSCORE.schema)
    (first, second) = bertscore.score_pairs(
        [Pair("Six books at a time.", ("Six books.",)), Pair("It opens at 9 a.m.", ("The library opens at nine.",))],
        no_advance,
    )
    values = ["precision", "recall", "f1"]
    assert table.select(values).slice(0, 2).to_pylist() == [first.values, second.values]


def test_more_answers_than_a_batch_holds_keep_their_order_and_are_scored_in_bounded_batches() -> None:
    count = 9000
    rows: list[tuple[str, int, str, str | None]] = [
        ("a", trial, "error" if trial % 10 == 0 else "ok", "x" * trial) for trial in range(count)
    ]
    scorer = LengthScorer()
    lines: list[str] = []
    table = score_table(scorer, examples(REFERENCES), answers(rows), LogReporter(lines.append, interval=0.0))
    assert table["trial"].to_pylist() == list(range(count))
    assert table["cosine"].to_pylist() == [None if trial % 10 == 0 else trial / 1e6 for trial in range(count)]
    assert max(scorer.calls) <= 2048
    assert f"{count} of {count} pairs" in lines[-1]


def test_no_answers_give_an_empty_table_with_all_columns() -> None:
    table = score_table(LengthScorer(), examples(REFERENCES), answers([]), SILENT)
    assert (table.num_rows, table.schema) == (0, SENTENCE_COSINE.schema)


def test_an_answer_without_example_stops_the_stage_by_name() -> None:
    scorer = LengthScorer()
    with pytest.raises(InfrastructureError, match="'zz'"):
        score_table(scorer, examples(REFERENCES), answers([*ANSWERS, ("zz", 0, "ok", "Hm.")]), SILENT)
    assert scorer.calls == []


def test_two_examples_with_one_id_stop_the_stage_by_name() -> None:
    twice = pa.concat_tables([examples(REFERENCES), examples({"d": "Another answer."})])
    with pytest.raises(InfrastructureError, match="'d' more than once"):
        score_table(LengthScorer(), twice, answers(ANSWERS), SILENT)
