"""What each check accepts and what it says of the rest."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.checks import (
    DRIFT_BOUND,
    DRIFT_METRICS,
    RANGE_SLACK,
    check_contract,
    check_drift,
    check_error_rate,
    check_scores,
)
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES, GENERATED_ANSWERS, RETRIEVAL_MATCHES, SCORE_HISTORY

TARGET = "Base line"


def answers(make, *statuses: str) -> pa.Table:
    rows = [{"example_id": make.IDS[n], "status": status} for n, status in enumerate(statuses)]
    return make.table(GENERATED_ANSWERS, rows)


class TestContract:
    def test_a_table_as_declared_with_a_row_for_every_example_passes(self, evaluation: Evaluation, make) -> None:
        make.put(evaluation, "generated_answers", answers(make, "ok", "ok", "error"))
        outcome = check_contract(evaluation, GENERATED_ANSWERS, TARGET)
        assert (outcome.passed, outcome.summary, outcome.figures) == (True, "3 rows as declared", {"rows": 3})

    def test_examples_need_no_other_table(self, evaluation: Evaluation) -> None:
        assert check_contract(evaluation, EVAL_EXAMPLES, None).passed

    @pytest.mark.parametrize(
        ("rows", "summary"),
        [
            (["a", "b"], "1 examples have no row"),
            (["a", "b", "c", "z"], "1 rows have no example"),
            (["a", "y", "z"], "2 examples have no row; 2 rows have no example"),
        ],
    )
    def test_rows_and_examples_must_be_the_same(
        self, evaluation: Evaluation, make, rows: list[str], summary: str
    ) -> None:
        content = make.table(RETRIEVAL_MATCHES, [{"example_id": row, "status": "judged"} for row in rows])
        make.put(evaluation, "retrieval_matches", content)
        outcome = check_contract(evaluation, RETRIEVAL_MATCHES, TARGET)
        assert (outcome.passed, outcome.summary) == (False, summary)

    def test_a_key_may_stand_once_and_each_trial_has_its_own(self, evaluation: Evaluation, make) -> None:
        row = {"status": "ok"}
        trials = [{"example_id": i, "trial": t, **row} for i in make.IDS for t in (0, 1)]
        make.put(evaluation, "generated_answers", make.table(GENERATED_ANSWERS, trials))
        assert check_contract(evaluation, GENERATED_ANSWERS, TARGET).passed
        make.put(evaluation, "generated_answers", make.table(GENERATED_ANSWERS, [*trials, trials[0]]))
        outcome = check_contract(evaluation, GENERATED_ANSWERS, TARGET)
        assert (outcome.passed, outcome.summary, outcome.worst) == (False, "1 keys stand more than once", ["a"])

    def test_documents_are_unique_too(self, evaluation: Evaluation, make) -> None:
        make.put(evaluation, "corpus", make.table(CORPUS, [{"document_id": "d"}, {"document_id": "d"}]), None)
        assert check_contract(evaluation, CORPUS, None).worst == ["d"]

    @pytest.mark.parametrize(
        ("change", "summary"),
        [
            (lambda t: t.drop_columns(["error"]), "column 'error' is missing"),
            (lambda t: t.append_column("note", pa.array(["", "", ""])), "column 'note' is not declared"),
            (
                lambda t: t.set_column(1, "trial", pa.array(["0", "0", "0"])),
                "column 'trial' is string, not int32",
            ),
            (
                lambda t: t.set_column(2, "status", pa.array(["ok", None, "ok"])),
                "column 'status' holds nulls",
            ),
        ],
    )
    def test_columns_are_those_of_the_schema(self, evaluation: Evaluation, make, change: Any, summary: str) -> None:
        make.put(evaluation, "generated_answers", change(answers(make, "ok", "ok", "ok")))
        outcome = check_contract(evaluation, GENERATED_ANSWERS, TARGET)
        assert (outcome.passed, outcome.summary) == (False, summary)

    def test_a_table_that_is_not_there_is_an_error_and_no_pass(self, evaluation: Evaluation) -> None:
        with pytest.raises(InfrastructureError, match="not in the store"):
            check_contract(evaluation, GENERATED_ANSWERS, TARGET)


class TestErrorRate:
    def test_one_in_twenty_is_let_pass_and_more_is_not(self, evaluation: Evaluation, make) -> None:
        def outcome(failed: int) -> Any:
            rows = [{"example_id": f"e{n}", "status": "error" if n < failed else "ok"} for n in range(20)]
            make.put(evaluation, "generated_answers", make.table(GENERATED_ANSWERS, rows))
            return check_error_rate(evaluation, TARGET)

        assert (outcome(1).passed, outcome(1).figures["error_rate"]) == (True, 0.05)
        two = outcome(2)
        assert (two.passed, two.summary, two.worst) == (False, "2 of 20 calls failed (10.0%, bound 5%)", ["e0", "e1"])
        assert len(outcome(20).worst) == 10

    def test_empty_answers_are_no_failed_calls(self, evaluation: Evaluation, make) -> None:
        make.put(evaluation, "generated_answers", answers(make, "empty", "invalid_text", "ok"))
        assert check_error_rate(evaluation, TARGET).figures["error_rate"] == 0.0


class TestScores:
    @pytest.mark.parametrize("values", [[-1.0, 0.0, 1.0], [1 + RANGE_SLACK / 2, 0.5, -1 - RANGE_SLACK / 2]])
    def test_cosines_pass(self, evaluation: Evaluation, make, score_spec, values: list[float]) -> None:
        make.put(evaluation, score_spec.name, make.scores(score_spec, values), scorer={})
        assert check_scores(evaluation, score_spec, TARGET).summary == "3 rows sound"

    @pytest.mark.parametrize("value", [1.001, -1.001, None])
    def test_a_scored_row_has_a_cosine(self, evaluation: Evaluation, make, score_spec, value: Any) -> None:
        make.put(evaluation, score_spec.name, make.scores(score_spec, [0.5, value, 0.5]), scorer={})
        outcome = check_scores(evaluation, score_spec, TARGET)
        assert (outcome.passed, outcome.worst, outcome.figures) == (False, ["b"], {"unsound": 1})

    def test_an_unscored_row_has_no_value(self, evaluation: Evaluation, make, score_spec) -> None:
        make.put(evaluation, score_spec.name, make.scores(score_spec, [None] * 3, "no_reference"), scorer={})
        assert check_scores(evaluation, score_spec, TARGET).passed
        make.put(evaluation, score_spec.name, make.scores(score_spec, [None, 0.0, None], "no_reference"), scorer={})
        assert check_scores(evaluation, score_spec, TARGET).worst == ["b"]

    def test_a_scorer_that_failed_on_a_row_is_told(self, evaluation: Evaluation, make, score_spec) -> None:
        make.put(evaluation, score_spec.name, make.scores(score_spec, [None] * 3, "scorer_error"), scorer={})
        assert check_scores(evaluation, score_spec, TARGET).worst == ["a", "b", "c"]

    def test_rescaled_scores_may_lie_below_and_not_above(self, evaluation: Evaluation, make, score_spec) -> None:
        """Rescaling makes (x - b) / (1 - b) of a cosine x: below -1 for unlike texts where the baseline b is high."""
        make.put(evaluation, score_spec.name, make.scores(score_spec, [-9.0, 0.5, 1.0]), scorer={"rescaled": True})
        assert check_scores(evaluation, score_spec, TARGET).passed
        make.put(evaluation, score_spec.name, make.scores(score_spec, [0.5, 0.5, 1.1]), scorer={"rescaled": True})
        assert check_scores(evaluation, score_spec, TARGET).worst == ["c"]


class TestDrift:
    def report(
        self, evaluation: Evaluation, make, date: str, fingerprint: str = "f", **means: float | None
    ) -> Evaluation:
        row = {
            "run_id": date,
            "run_date": date,
            "timestamp": dt.datetime(2026, 3, 1, tzinfo=dt.UTC),
            "dataset_fingerprint": fingerprint,
            "content_sha256": "c",
            "gate_outcome": "none",
            "report": "r",
            "n_examples": 3,
            "n_errors": 0,
            **dict.fromkeys(DRIFT_METRICS, 0.8),
            **means,
        }
        of_date = dataclasses.replace(evaluation, run_date=date)
        make.put(of_date, "eval_report", pa.Table.from_pylist([row], schema=SCORE_HISTORY.schema))
        return of_date

    @pytest.mark.parametrize("name", DRIFT_METRICS)
    def test_each_mean_may_fall_a_little_and_rise_as_it_will(self, evaluation: Evaluation, make, name: str) -> None:
        self.report(evaluation, make, "2026-03-01")
        now = self.report(evaluation, make, "2026-03-02", **{name: 0.8 - DRIFT_BOUND - 0.001})
        outcome = check_drift(now, TARGET)
        assert (outcome.passed, outcome.summary) == (False, f"{name} by 0.0510 fell against 2026-03-01")
        now = self.report(evaluation, make, "2026-03-02", **{name: 0.8 - DRIFT_BOUND + 0.001})
        assert check_drift(now, TARGET).passed
        now = self.report(evaluation, make, "2026-03-02", **{name: 1.0})
        assert check_drift(now, TARGET).passed

    def test_the_newest_earlier_date_with_the_same_questions_counts(self, evaluation: Evaluation, make) -> None:
        self.report(evaluation, make, "2026-02-01", mrr=1.0)
        self.report(evaluation, make, "2026-02-02", mrr=0.9)
        self.report(evaluation, make, "2026-02-03", mrr=0.0, fingerprint="another")
        self.report(evaluation, make, "2026-03-09", mrr=0.0)
        now = self.report(evaluation, make, "2026-03-01", mrr=0.9)
        assert check_drift(now, TARGET).summary == "nothing fell by more than 0.05 against 2026-02-02"

    def test_nothing_to_compare_with_is_no_drift(self, evaluation: Evaluation, make) -> None:
        self.report(evaluation, make, "2026-02-01", fingerprint="another")
        outcome = check_drift(self.report(evaluation, make, "2026-03-01"), TARGET)
        assert (outcome.passed, outcome.summary) == (True, "no earlier run date has the same data set")

    def test_a_mean_that_either_side_lacks_is_left_out(self, evaluation: Evaluation, make) -> None:
        self.report(evaluation, make, "2026-02-01", mrr=None)
        now = self.report(evaluation, make, "2026-03-01", bertscore_f1_mean=None)
        figures = check_drift(now, TARGET).figures
        assert set(figures) == {"top_k_match_rate_fall", "sentence_cosine_mean_fall", "bound"}

    def test_a_sample_is_compared_with_nothing(self, evaluation: Evaluation, make) -> None:
        sample = dataclasses.replace(evaluation, limit=2)
        self.report(sample, make, "2026-02-01", mrr=1.0)
        outcome = check_drift(self.report(sample, make, "2026-03-01", mrr=0.1), TARGET)
        assert (outcome.passed, outcome.figures) == (True, {})
