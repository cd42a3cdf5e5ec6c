"""The table `retrieval_matches`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.retrieval.matching import MatchSettings
from rag_eval_assets.retrieval.table import match_table
from rag_eval_assets.tables import EVAL_EXAMPLES, GENERATED_ANSWERS, RETRIEVAL_MATCHES

CONTEXT = "The water board rations what the farms may take when the upper half runs dry in late summer."


def examples(*rows: dict) -> pa.Table:
    base = {
        "question": "Why?",
        "reference_answer": "So.",
        "context": CONTEXT,
        "context_id": None,
        "source": "questions.jsonl",
        "source_row": 0,
        "row_sha256": "0" * 64,
    }
    return pa.Table.from_pylist([{**base, **row} for row in rows], schema=EVAL_EXAMPLES.schema)


def answers(*rows: dict) -> pa.Table:
    base = {"trial": 0, "status": "ok", "answer": "So.", "passages": None}
    return pa.Table.from_pylist([{**base, **row} for row in rows], schema=GENERATED_ANSWERS.schema)


def texts(*items: str) -> list[dict]:
    return [{"id": None, "document_id": None, "text": item, "score": 0.5} for item in items]


def test_each_answer_gets_a_row_in_its_order_with_the_declared_schema() -> None:
    found = match_table(
        examples({"example_id": "a"}, {"example_id": "b", "context": None}, {"example_id": "c"}, {"example_id": "d"}),
        answers(
            {"example_id": "d", "status": "error", "answer": None, "error": "503"},
            {"example_id": "c", "passages": []},
            {"example_id": "b", "passages": texts(CONTEXT)},
            {"example_id": "a", "passages": texts("Something else.", CONTEXT)},
            {"example_id": "a", "trial": 1},
        ),
        MatchSettings(k=1),
    )
    assert found.schema.equals(RETRIEVAL_MATCHES.schema, check_metadata=True)
    rows = found.to_pylist()
    assert [(row["example_id"], row["trial"]) for row in rows] == [("d", 0), ("c", 0), ("b", 0), ("a", 0), ("a", 1)]
    assert [row["status"] for row in rows] == ["target_error", "judged", "no_context", "judged", "no_passages"]
    assert [row["retrieved"] for row in rows] == [None, 0, 1, 2, None]
    assert [row["rank"] for row in rows] == [None, None, None, 2, None]
    assert [row["top_k_match"] for row in rows] == [None, False, None, False, None]
    assert [row["matched"] for row in rows] == [None, [], None, [False, True], None]


def test_an_empty_answer_is_still_judged_by_what_was_retrieved() -> None:
    found = match_table(
        examples({"example_id": "a"}),
        answers({"example_id": "a", "status": "empty", "answer": None, "passages": texts(CONTEXT)}),
        MatchSettings(),
    )
    assert found.to_pylist()[0]["rank"] == 1


def test_no_answers_give_an_empty_table() -> None:
    found = match_table(examples({"example_id": "a"}), answers(), MatchSettings())
    assert found.num_rows == 0
    assert found.schema.equals(RETRIEVAL_MATCHES.schema)


def test_an_answer_to_an_unknown_example_is_refused() -> None:
    with pytest.raises(InfrastructureError, match="'ghost'"):
        match_table(examples({"example_id": "a"}), answers({"example_id": "ghost"}), MatchSettings())


def test_many_batches_keep_the_order() -> None:
    ids = [f"e{i}" for i in range(2_500)]
    found = match_table(
        examples(*[{"example_id": i} for i in ids]), answers(*[{"example_id": i} for i in ids]), MatchSettings()
    )
    assert found["example_id"].to_pylist() == ids
