"""A fall of a mean against an earlier date is told, with the examples that it came from."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pyarrow as pa
import pytest

from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.drift import DRIFT_METRICS, check_drift
from rag_eval_assets.tables import BERTSCORE, RETRIEVAL_MATCHES, SCORE_HISTORY

TARGET = "Base line"
DRIFT_BOUND = 0.05


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

    def test_the_examples_that_fell_most_are_named_worst_first(self, evaluation: Evaluation, make) -> None:
        earlier = self.report(evaluation, make, "2026-02-01")
        make.put(earlier, "bertscore", make.scores(BERTSCORE, [0.9, 0.9, 0.5]))
        now = self.report(evaluation, make, "2026-03-01", bertscore_f1_mean=0.1, sentence_cosine_mean=0.7)
        make.put(now, "bertscore", make.scores(BERTSCORE, [0.8, 0.1, 0.6]))
        outcome = check_drift(now, TARGET)
        assert (outcome.passed, outcome.worst) == (False, ["b", "a"])

    def test_a_rank_that_fell_and_one_that_is_gone_are_named_too(self, evaluation: Evaluation, make) -> None:
        def matches(*ranks: int | None) -> pa.Table:
            rows = [
                {"example_id": i, "status": "judged", "rank": rank, "top_k_match": rank == 1}
                for i, rank in zip(make.IDS, ranks, strict=True)
            ]
            return make.table(RETRIEVAL_MATCHES, rows)

        earlier = self.report(evaluation, make, "2026-02-01")
        make.put(earlier, "retrieval_matches", matches(1, 2, 1))
        now = self.report(evaluation, make, "2026-03-01", mrr=0.2)
        make.put(now, "retrieval_matches", matches(2, 2, None))
        assert check_drift(now, TARGET).worst == ["c", "a"]

    def test_where_the_tables_of_the_earlier_date_are_gone_the_fall_is_told_all_the_same(
        self, evaluation: Evaluation, make
    ) -> None:
        self.report(evaluation, make, "2026-02-01")
        outcome = check_drift(self.report(evaluation, make, "2026-03-01", mrr=0.2), TARGET)
        assert (outcome.passed, outcome.worst) == (False, [])
