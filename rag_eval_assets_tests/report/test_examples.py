"""The per-example table: one row per example, in order, with a status and without anything that changes."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.report.examples import example_rows, row_metrics
from rag_eval_assets.tables import BERTSCORE, SENTENCE_COSINE, score_table

METRICS = ["bertscore_precision", "bertscore_recall", "bertscore_f1", "sentence_cosine"]


def replace(table: pa.Table, name: str, values: list) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table.set_column(position, table.schema.field(name), pa.array(values, table.schema.field(name).type))


def test_columns_stand_side_by_side_in_the_data_sets_order(rows) -> None:
    assert rows["example_id"].to_pylist() == ["e1", "e2", "e3", "e4", "e5", "e6"]
    assert rows.schema.names == [
        *("example_id", "question", "reference_answer", "context", "context_id", "row_sha256", "status"),
        *("answer", "error", "generator", "passages"),
        *("retrieval_status", "retrieval_method", "rank", "top_k_match", "matched"),
        *("bertscore_status", "bertscore_detail", "bertscore_truncated"),
        *("bertscore_precision", "bertscore_recall", "bertscore_f1"),
        *("sentence_cosine_status", "sentence_cosine_detail", "sentence_cosine_truncated", "sentence_cosine"),
        *("input_tokens", "output_tokens", "cost_usd"),
    ]
    assert list(row_metrics(rows)) == METRICS


def test_statuses(rows) -> None:
    assert rows["status"].to_pylist() == ["ok", "ok", "no_reference", "no_context", "empty", "error"]


def test_a_failed_call_hides_a_missing_reference_and_that_a_missing_context(tables, make_rows) -> None:
    tables["eval_examples"] = replace(tables["eval_examples"], "reference_answer", [None, " ", None, None, None, None])
    tables["generated_answers"] = replace(
        tables["generated_answers"], "status", ["ok", "ok", "invalid_text", "ok", "empty", "error"]
    )
    expected = ["no_reference", "no_reference", "invalid_text", "no_reference", "empty", "error"]
    assert make_rows(tables)["status"].to_pylist() == expected


def test_tables_in_another_order_give_the_same_rows(tables, rows, make_rows) -> None:
    reverse = pa.array(range(5, -1, -1))
    shuffled = {n: t if n == "eval_examples" else t.take(reverse) for n, t in tables.items()}
    assert make_rows(shuffled).equals(rows, check_metadata=True)


def test_an_example_without_an_answer_is_an_error_and_not_lost(tables, make_rows) -> None:
    short = {name: table if name == "eval_examples" else table.slice(0, 5) for name, table in tables.items()}
    last = make_rows(short).to_pylist()[-1]
    assert (last["example_id"], last["status"]) == ("e6", "error")
    assert last["error"] == "the target was not asked"
    assert (last["retrieval_status"], last["bertscore_status"]) == ("target_error", "scorer_error")


def test_the_first_trial_is_shown_and_the_first_judged_one_gives_the_rank(tables, make_rows) -> None:
    again = {
        "generated_answers": {"trial": 1, "status": "ok", "answer": "Second.", "passages": []},
        "retrieval_matches": {"trial": 1, "status": "judged", "method": "text", "rank": 2, "top_k_match": True},
    }
    for name, values in again.items():
        for example_id in ("e1", "e5"):
            row = {**tables[name].slice(0, 1).to_pylist()[0], "example_id": example_id, **values}
            tables[name] = pa.concat_tables([pa.Table.from_pylist([row], schema=tables[name].schema), tables[name]])
    found = {row["example_id"]: row for row in make_rows(tables).to_pylist()}
    assert (found["e1"]["answer"], found["e1"]["rank"], len(found["e1"]["passages"])) == ("\nAnswer 0.", 1, 3)
    # Trial 0 of e5 names no passages and cannot be judged.
    assert (found["e5"]["status"], found["e5"]["rank"], found["e5"]["passages"]) == ("empty", 2, [])


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, None])
def test_a_score_that_is_no_finite_number_is_the_scorers_error(tables, make_rows, broken) -> None:
    tables["bertscore"] = replace(tables["bertscore"], "f1", [broken, 0.5, None, 0.7, None, None])
    first = make_rows(tables).to_pylist()[0]
    assert (first["bertscore_status"], first["bertscore_f1"], first["bertscore_precision"]) == (
        "scorer_error",
        None,
        None,
    )
    assert first["bertscore_detail"] == "the score is not a finite number"
    assert first["sentence_cosine"] == 0.8


def test_columns_of_one_name_are_refused(tables) -> None:
    base = [tables[name] for name in ("eval_examples", "generated_answers", "retrieval_matches")]
    scores = tables["sentence_cosine"].rename_columns(
        ["example_id", "trial", "status", "detail", "truncated", "b_status"]
    )
    with pytest.raises(ConfigurationError, match="'a_b_status' stands twice"):
        example_rows(*base, {"a": scores, "a_b": tables["sentence_cosine"]})
    with pytest.raises(ConfigurationError, match="'retrieval_status' stands twice"):
        example_rows(*base, {"retrieval": tables["sentence_cosine"]})


def test_further_scorers_get_columns_of_their_own(tables) -> None:
    exact = score_table("exact", "Equal texts.", {"score": "1 where equal, else 0."})
    values = [{"example_id": "e1", "trial": 0, "status": "scored", "truncated": False, "score": 1.0}]
    base = [tables[name] for name in ("eval_examples", "generated_answers", "retrieval_matches")]
    found = example_rows(*base, {"exact": pa.Table.from_pylist(values, schema=exact.schema)})
    assert row_metrics(found) == {"exact_score": "exact"}
    assert found["exact_score"].to_pylist() == [1.0, None, None, None, None, None]


def test_score_tables_of_the_project_give_the_required_metrics(tables, make_rows) -> None:
    assert {BERTSCORE.name, SENTENCE_COSINE.name} <= set(tables)
    assert set(row_metrics(make_rows(tables, ("sentence_cosine",)))) == {"sentence_cosine"}
