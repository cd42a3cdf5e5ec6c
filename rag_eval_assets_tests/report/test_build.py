"""The report of a small run, every number worked out by hand."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_eval_assets.report.build import RunFacts, build_report
from rag_eval_assets.report.identity import NOT_CONTENT, report_content_hash
from rag_eval_assets.report.schema import GateResult, Gates, InputTable, ScorerCalls

THIRD = 1 / 3
CALLS = ScorerCalls(live=2, replayed=0, recorded=2, missing=0, requests=2, tokens=7, cost_usd=None)


def test_what_the_contract_requires_stands_under_its_names(report) -> None:
    values = report.to_json()
    assert values["schema_version"] == "1.1.0"
    assert values["timestamp"] == "2026-03-02T12:00:00.000000+00:00"
    assert {"name": "questions", "split": "test", "n_examples": 6}.items() <= values["dataset"].items()
    assert values["models"]["generator"] == "small-model"
    assert values["models"]["bertscore"]["id"] == "bert-base-uncased"
    assert values["models"]["sentence_transformer"] is None
    assert set(values["answer_similarity_summary"]["bertscore_f1"]) >= {"mean", "p10", "p50", "p90"}
    assert set(values["answer_similarity_summary"]["sentence_cosine"]) >= {"mean", "p10", "p50", "p90"}
    first = values["examples"][0]
    assert (first["id"], first["question"], first["reference_answer"]) == ("e1", "Question 0?", "Reference 0.")
    assert first["generated_answer"] == "\nAnswer 0."
    assert {"top_k_match": True, "rank": 1}.items() <= first["retrieval"].items()
    assert first["answer_similarity"] == {
        "bertscore": {"precision": 0.9, "recall": 0.9, "f1": 0.9},
        "sentence_cosine": 0.8,
    }


def test_counts_add_up_to_what_was_attempted(report) -> None:
    counts = report.counts.model_dump()
    assert counts == {"attempted": 6, "answered": 4, "empty": 1, "invalid_text": 0, "errored": 1}
    assert sum(counts.values()) == 2 * counts["attempted"]
    matching = report.retrieval_summary.matching
    assert matching.statuses == {"judged": 3, "no_context": 1, "no_passages": 1, "target_error": 1}
    assert matching.methods == {"text": 3}
    for summary in report.answer_similarity_summary.metrics().values():
        assert summary.n_scored + sum(summary.unscored_by_status.values()) == summary.attempted == 6


def test_retrieval_summary(report) -> None:
    found = report.to_json()["retrieval_summary"]
    del found["matching"]
    assert found == {
        "top_k_match_rate": THIRD,
        "top_k_match_rate_ci95": None,
        "k": 2,
        "hit_rate@1": THIRD,
        "hit_rate@3": None,
        "hit_rate@5": None,
        "hit_rate@10": None,
        "mrr": pytest.approx((1 + THIRD) / 3, abs=1e-15),
        "ndcg@k": THIRD,
        "n_judged": 3,
        "n_matched": 1,
    }


def test_similarity_summary(report) -> None:
    found = report.answer_similarity_summary.bertscore_f1
    assert found.scorer == "bertscore"
    assert [found.mean, found.p10, found.p50, found.p90] == pytest.approx([0.7, 0.54, 0.7, 0.86], abs=1e-15)
    assert (found.std, found.min, found.max, found.ci95) == (pytest.approx(0.2, abs=1e-15), 0.5, 0.9, None)
    # Of six, the failed call counts nowhere; the empty answer and the missing reference count 0.0.
    assert found.mean_with_failures_as_zero == pytest.approx(2.1 / 5, abs=1e-15)
    assert (found.attempted, found.n_scored, found.n_truncated, found.errored, found.no_reference) == (6, 3, 1, 1, 1)
    assert found.unscored_by_status == {"empty_answer": 1, "no_reference": 1, "target_error": 1}
    cosine = report.answer_similarity_summary.sentence_cosine
    assert cosine.mean == pytest.approx(1.3 / 3, abs=1e-15)
    assert (cosine.min, cosine.n_truncated) == (-0.1, 0)


def test_an_example_says_what_became_of_it(report) -> None:
    by_id = {example.id: example for example in report.examples}
    assert by_id["e2"].truncated == ["bertscore"]
    assert by_id["e3"].score_status == {"bertscore": "no_reference", "sentence_cosine": "no_reference"}
    assert by_id["e3"].answer_similarity.model_dump() == {"bertscore": None, "sentence_cosine": None}
    assert (by_id["e5"].generated_answer, by_id["e5"].retrieved) == (None, None)
    assert (by_id["e6"].status, by_id["e6"].error) == ("error", "503 Service Unavailable")
    passages = by_id["e2"].retrieved
    assert [(p.id, p.rank, p.matched) for p in passages] == [("p1", 1, False), ("p2", 2, False), ("p3", 3, True)]
    assert {len(p.text) for p in passages} == {200}


def test_run_facts(report) -> None:
    assert (report.measured_at.first.second, report.measured_at.last.second) == (0, 5)
    assert report.measured_at.days_after_run_date == 1
    assert report.run.latency_ms.model_dump() == {"p50": 102.5, "p90": 104.5, "p99": 104.95}
    assert {"live": 6, "journal": 0, "replayed": 0, "recorded": 0, "missing": 0}.items() <= dict(
        report.run.calls
    ).items()


def test_required_summaries_stand_without_any_scorer(make_inputs, make_rows, tables) -> None:
    found = build_report(make_inputs(rows=make_rows(tables, ()))).to_json()["answer_similarity_summary"]
    assert list(found) == ["bertscore_f1", "bertscore_precision", "bertscore_recall", "sentence_cosine"]
    for summary in found.values():
        assert (summary["mean"], summary["p10"], summary["ci95"], summary["n_scored"]) == (None, None, None, 0)
        assert summary["unscored_by_status"] == {"no_scorer": 6}


def test_a_run_of_no_examples_has_a_report(make_inputs, make_rows, tables) -> None:
    empty = {name: table.slice(0, 0) for name, table in tables.items()}
    found = build_report(make_inputs(rows=make_rows(empty), call_log=empty["call_log"]))
    assert (found.counts.attempted, found.examples, found.retrieval_summary.mrr) == (0, [], None)
    assert found.answer_similarity_summary.bertscore_f1.mean is None
    assert (found.models.generator, found.measured_at.first) == ("unknown", None)


def test_several_generators_are_listed(make_inputs, tables, make_rows) -> None:
    names = pa.array(["b", "a", "b", None, "a", None])
    answers = tables["generated_answers"]
    position = answers.schema.get_field_index("generator")
    tables["generated_answers"] = answers.set_column(position, answers.schema.field(position), names)
    assert build_report(make_inputs(rows=make_rows(tables))).models.generator == ["a", "b"]


def test_above_the_limit_examples_stand_in_the_table_alone(make_inputs, report) -> None:
    found = build_report(make_inputs(max_examples=5))
    assert (found.examples, found.examples_truncated) == ([], True)
    assert found.examples_sha256 == report.examples_sha256
    assert found.answer_similarity_summary == report.answer_similarity_summary
    assert not build_report(make_inputs(max_examples=6)).examples_truncated


def test_at_most_a_hundred_excluded_rows_are_listed_and_all_counted(make_inputs) -> None:
    inputs = make_inputs()
    rows = [{"source": "s", "row": row, "reason": "no question"} for row in range(150)]
    found = build_report(dataclasses.replace(inputs, dataset=dataclasses.replace(inputs.dataset, excluded=rows)))
    assert (found.dataset.excluded.count, len(found.dataset.excluded.rows)) == (150, 100)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_no_number_that_is_not_finite_gets_into_a_report(make_inputs, tables, make_rows, broken) -> None:
    inputs = make_inputs()
    with pytest.raises(ValidationError, match="finite"):
        build_report(dataclasses.replace(inputs, run=dataclasses.replace(inputs.run, seconds={"bertscore": broken})))
    passages = [[{"id": "p", "document_id": None, "text": "t", "score": broken}]] * 6
    answers = tables["generated_answers"]
    for name, values in (("passages", passages), ("cost_usd", [broken] * 6)):
        position = answers.schema.get_field_index(name)
        column = pa.array(values, answers.schema.field(position).type)
        answers = answers.set_column(position, answers.schema.field(position), column)
    tables["generated_answers"] = answers
    found = build_report(make_inputs(rows=make_rows(tables))).examples[0]
    assert (found.cost_usd, found.retrieved[0].score) == (None, None)


class TestContentHash:
    def test_it_takes_no_notice_of_what_may_differ(self, make_inputs, report) -> None:
        inputs = make_inputs()
        later = inputs.timestamp + dt.timedelta(days=9)
        other = build_report(
            dataclasses.replace(
                inputs,
                run_id="7c0c86e7-7d0b-5f0e-8f60-0c1a4a3a6b52",
                timestamp=later,
                call_log=inputs.call_log.slice(0, 3),
                models={"bertscore": {"id": "bert-base-uncased", "layer": 9}},
                run=RunFacts(
                    run_date="2026-03-09",
                    dagster_run_id="d-2",
                    env="prod",
                    host=inputs.run.host.model_copy(update={"instruction_set": "AVX512", "cpu_count": 64}),
                    seconds={"bertscore": 1.5},
                    scorer_calls={"similarity": CALLS},
                    versions={"numpy": "2.4.6"},
                    inputs={
                        "bertscore": InputTable(
                            dagster_run_id="d-2", materialized_at=later, data_version="x", code_version="1"
                        )
                    },
                ),
            )
        )
        assert other.content_sha256 == report.content_sha256
        assert other.run != report.run

    def test_every_other_field_changes_it(self, report) -> None:
        values = report.to_json()
        assert report_content_hash(values) == report.content_sha256
        for name in values.keys() - NOT_CONTENT:
            changed = copy.deepcopy(values)
            changed[name] = "changed"
            assert report_content_hash(changed) != report.content_sha256, name

    def test_deep_fields_change_it(self, report) -> None:
        for path in (
            ("answer_similarity_summary", "bertscore_f1", "mean"),
            ("retrieval_summary", "matching", "ngram_threshold"),
            ("models", "bertscore", "layer"),
            ("examples", 3, "answer_similarity", "sentence_cosine"),
            ("examples", 1, "retrieved", 2, "text"),
        ):
            changed = report.to_json()
            part = changed
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = 0.123456
            assert report_content_hash(changed) != report.content_sha256, path

    def test_gates_and_notes_are_content(self, make_inputs, report) -> None:
        gate = GateResult(name="mean", outcome="fail", value=0.5, threshold=0.8)
        gates = Gates(outcome="fail", results=[gate])
        assert build_report(make_inputs(gates=gates)).content_sha256 != report.content_sha256
        assert build_report(make_inputs(notes=["unreplayable"])).content_sha256 != report.content_sha256

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.text(st.characters(exclude_categories=["Cs"])))
    def test_it_survives_the_way_through_a_file(self, make_inputs, make_rows, tables, scores, text) -> None:
        changed = dict(tables)
        for name, column, values in (
            ("sentence_cosine", "cosine", pa.array(scores)),
            ("sentence_cosine", "status", pa.array(["scored"] * 6)),
            ("generated_answers", "answer", pa.array([text] * 6)),
        ):
            table = changed[name]
            position = table.schema.get_field_index(column)
            changed[name] = table.set_column(position, table.schema.field(position), values)
        built = build_report(make_inputs(rows=make_rows(changed)))
        read_back = json.loads(json.dumps(built.to_json(), allow_nan=False))
        assert report_content_hash(read_back) == built.content_sha256
