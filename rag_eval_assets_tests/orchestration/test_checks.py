"""Checks on a date's tables: the contract stops what is downstream of that date and of nothing else; the rest warn."""

from __future__ import annotations

import dataclasses
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from rag_eval_assets.evaluation import stages
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.suite.load import read_suite

DATES = ("2026-03-01", "2026-03-02", "2026-03-03")


def check(result: dg.ExecuteInProcessResult, name: str, asset: str) -> Any:
    """The evaluation of one check as the event log has it, partition included."""
    events = [event.asset_check_evaluation_data for event in result.all_events if event.event_type_value == EVALUATION]
    (found,) = [e for e in events if e.check_name == name and e.asset_key.path[-1] == asset]
    return found


EVALUATION = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value


class TestAFaultOnOneDate:
    """The examples of the second of three dates hold every id twice."""

    @pytest.fixture
    def results(self, place, monkeypatch: pytest.MonkeyPatch) -> dict[str, dg.ExecuteInProcessResult]:
        suite = place.suite()
        whole = stages.load_examples

        def twice(suite, limit, **how):
            examples = whole(suite, limit, **how)
            return dataclasses.replace(examples, table=pa.concat_tables([examples.table, examples.table]))

        results: dict[str, dg.ExecuteInProcessResult] = {}
        for date in DATES:
            monkeypatch.setattr(stages, "load_examples", twice if date == DATES[1] else whole)
            results[date] = place.materialize(suite, date=date)
        return results

    def test_it_stops_its_own_date_and_no_other(self, place, results: dict[str, dg.ExecuteInProcessResult]) -> None:
        assert [result.success for result in results.values()] == [True, False, True]
        tables = place.home.tables / "tiny"
        for asset in ("generated_answers", "retrieval_matches", "bertscore", "eval_report", "score_history"):
            dates = {path.name.removeprefix("run_date=") for path in (tables / "pipeline" / asset).iterdir()}
            assert dates == {DATES[0], DATES[2]}, asset
        # The table that is at fault stays, to be looked at.
        assert (tables / "eval_examples" / f"run_date={DATES[1]}" / "part-0.parquet").is_file()
        assert len(list(place.home.reports.rglob("*.json"))) == 2

        failed = check(results[DATES[1]], "table_contract", "eval_examples")
        assert not failed.passed
        assert failed.blocking
        assert failed.severity == dg.AssetCheckSeverity.ERROR
        assert failed.partition == DATES[1]
        assert failed.description == "4 keys stand more than once"
        assert failed.metadata["worst"].value == ["q1", "q2", "q3", "q4"]
        assert check(results[DATES[2]], "table_contract", "eval_examples").partition == DATES[2]
        assert place.calls.count("Who keeps the bees?") == 2, "the target was not asked on the faulty date"

    def test_what_begins_behind_the_check_is_stopped_too(
        self, place, results: dict[str, dg.ExecuteInProcessResult]
    ) -> None:
        """Dagster counts the table as made, so a re-execution from failure begins with what is downstream of it."""
        asked = len(place.calls)
        suite = read_suite(next(place.folder.glob("*-files")) / "suite.yaml")
        result = place.materialize(suite, ["generated_answers"], date=DATES[1])
        (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
        assert "'eval_examples' of 2026-03-02 breaks its contract: 4 keys stand more than once" in str(failure.error)
        assert len(place.calls) == asked


def test_a_failed_contract_is_what_the_command_line_hears(place, monkeypatch) -> None:
    suite = place.suite()
    whole = stages.match_table
    monkeypatch.setattr(stages, "match_table", lambda *arguments: whole(*arguments).slice(1))
    done = place.execute(suite, limit=3)
    (failure,) = done.failures
    assert failure.exit_code == 3
    assert str(failure) == (
        "check 'table_contract' of tiny/pipeline/retrieval_matches failed: 1 example has no row. "
        "What is downstream of it was not made"
    )
    assert done.reports == []


def test_failed_calls_above_the_bound_warn_and_stop_nothing(place) -> None:
    suite = place.suite()
    place.replies["Who keeps the bees?"] = CallError("500", "the server stumbled")
    result = place.materialize(suite)
    assert result.success
    found = check(result, "error_rate", "generated_answers")
    assert (found.passed, found.severity, found.blocking) == (False, dg.AssetCheckSeverity.WARN, False)
    assert found.description == "1 of 4 calls failed (25.0%, bound 5.0%)"
    assert found.metadata["worst"].value == ["q2"]
    assert found.partition == DATES[0]
    assert len(list(place.home.reports.rglob("*.json"))) == 1


def test_a_score_out_of_range_warns_and_stops_nothing(place, monkeypatch, village) -> None:
    from rag_eval_assets.scoring.base import PairScore
    from rag_eval_assets.status import ScoreStatus

    suite = place.suite()
    beyond = PairScore(ScoreStatus.SCORED, values={"cosine": 1.5, "precision": 0.5, "recall": 0.5, "f1": 0.5})
    monkeypatch.setattr(village.WordOverlap, "_score", lambda self, pair: beyond)
    result = place.materialize(suite)
    assert result.success
    found = check(result, "sound_scores", "sentence_cosine")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.metadata["unsound"].value == 4.0
    assert check(result, "sound_scores", "bertscore").passed


class TestDrift:
    def test_a_fall_against_the_last_date_with_the_same_questions_warns(self, place, village) -> None:
        suite = place.suite()
        place.replies.update({row["question"]: row["answer"] for row in village.ROWS})
        assert check(place.materialize(suite, date=DATES[0]), "drift", "eval_report").passed
        place.replies.update({row["question"]: "nonsense" for row in village.ROWS})
        result = place.materialize(suite, date=DATES[2])
        assert result.success
        found = check(result, "drift", "eval_report")
        assert (found.passed, found.severity, found.partition) == (False, dg.AssetCheckSeverity.WARN, DATES[2])
        assert found.description == (
            f"bertscore_f1_mean by 1.0000, sentence_cosine_mean by 1.0000 fell against {DATES[0]}"
        )
        assert found.metadata["bertscore_f1_mean_fall"].value == 1.0
        assert found.metadata["top_k_match_rate_fall"].value == 0.0

        better = place.materialize(suite, date="2026-03-05")
        assert check(better, "drift", "eval_report").description.endswith(f"against {DATES[2]}"), (
            "the newest earlier one"
        )

        before_all = place.materialize(suite, date="2026-02-01")
        assert check(before_all, "drift", "eval_report").description == "no earlier run date has the same data set"

    def test_other_questions_are_not_compared(self, place, village) -> None:
        place.replies.update({row["question"]: row["answer"] for row in village.ROWS})
        assert place.materialize(place.suite(), date=DATES[0]).success
        place.replies.update({row["question"]: "nonsense" for row in village.ROWS})
        result = place.materialize(place.suite(rows=village.ROWS[:3]), date=DATES[1])
        assert check(result, "drift", "eval_report").description == "no earlier run date has the same data set"

    def test_a_sample_is_neither_compared_nor_compared_with(self, place, village) -> None:
        suite = place.suite()
        place.replies.update({row["question"]: row["answer"] for row in village.ROWS})
        assert place.materialize(suite, date=DATES[0], limit=4).success, "all four questions, and yet a sample"
        place.replies.update({row["question"]: "nonsense" for row in village.ROWS})
        sample = check(place.materialize(suite, date=DATES[1], limit=4), "drift", "eval_report")
        assert sample.passed
        assert set(sample.metadata) == set()
        whole = check(place.materialize(suite, date=DATES[1]), "drift", "eval_report")
        assert whole.description == "no earlier run date has the same data set"


class TestBlocking:
    def test_a_check_that_the_suite_calls_blocking_stops_what_is_downstream(self, place) -> None:
        suite = place.suite(checks={"error_rate": {"at_most": 0.2, "blocking": True}})
        place.replies["Who keeps the bees?"] = CallError("500", "the server stumbled")
        result = place.materialize(suite)
        assert not result.success
        found = check(result, "error_rate", "generated_answers")
        assert (found.passed, found.severity, found.blocking) == (False, dg.AssetCheckSeverity.ERROR, True)
        assert found.metadata["bound"].value == 0.2
        assert not (place.home.tables / "tiny" / "pipeline" / "bertscore").exists()

    def test_a_bound_that_is_kept_stops_nothing(self, place) -> None:
        suite = place.suite(checks={"error_rate": {"at_most": 0.25, "blocking": True}})
        place.replies["Who keeps the bees?"] = CallError("500", "the server stumbled")
        assert place.materialize(suite).success


def test_a_context_that_the_corpus_lacks_warns_and_names_the_example(place, village) -> None:
    suite = place.suite(rows=[*village.ROWS[:3], {**village.ROWS[3], "context_id": "lost"}])
    result = place.materialize(suite)
    assert result.success
    found = check(result, "corpus_coverage", "retrieval_matches")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.metadata["coverage"].value == 0.75
    assert found.metadata["worst"].value == ["q4"]


def test_examples_without_a_score_warn_per_scorer(place) -> None:
    suite = place.suite()
    place.replies["Who keeps the bees?"] = ""
    result = place.materialize(suite)
    assert result.success
    for scorer in ("bertscore", "sentence_cosine"):
        found = check(result, "completeness", scorer)
        assert (found.passed, found.metadata["completeness"].value) == (False, 0.75)
        assert found.metadata["worst"].value == ["q2"]
