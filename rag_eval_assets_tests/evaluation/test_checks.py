"""What each check accepts and what it says of the rest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.checks import RANGE_SLACK, check_contract, check_error_rate, check_scores
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES, GENERATED_ANSWERS, RETRIEVAL_MATCHES

TARGET = "Base line"


def answers(make, *statuses: str) -> pa.Table:
    rows = [{"example_id": make.IDS[n], "status": status} for n, status in enumerate(statuses)]
    return make.table(GENERATED_ANSWERS, rows)


class TestContract:
    def test_a_table_as_declared_with_a_row_for_every_example_passes(self, evaluation: Evaluation, make) -> None:
        make.put(evaluation, "generated_answers", answers(make, "ok", "ok", "error"))
        outcome = check_contract(evaluation, GENERATED_ANSWERS, TARGET)
        assert (outcome.passed, outcome.summary, outcome.figures) == (
            True,
            "3 rows as declared",
            {"rows": 3, "faults": 0, "bound": 0},
        )

    def test_examples_need_no_other_table(self, evaluation: Evaluation) -> None:
        assert check_contract(evaluation, EVAL_EXAMPLES, None).passed

    @pytest.mark.parametrize(
        ("rows", "summary", "worst"),
        [
            (["a", "b"], "1 example has no row", ["c"]),
            (["a", "b", "c", "z"], "1 row has no example", ["z"]),
            (["a", "y", "z"], "2 examples have no row; 2 rows have no example", ["b", "c", "y", "z"]),
        ],
    )
    def test_rows_and_examples_must_be_the_same(
        self, evaluation: Evaluation, make, rows: list[str], summary: str, worst: list[str]
    ) -> None:
        content = make.table(RETRIEVAL_MATCHES, [{"example_id": row, "status": "judged"} for row in rows])
        make.put(evaluation, "retrieval_matches", content)
        outcome = check_contract(evaluation, RETRIEVAL_MATCHES, TARGET)
        assert (outcome.passed, outcome.summary, outcome.worst) == (False, summary, worst)

    def test_a_key_may_stand_once_and_each_trial_has_its_own(self, evaluation: Evaluation, make) -> None:
        row = {"status": "ok"}
        trials = [{"example_id": i, "trial": t, **row} for i in make.IDS for t in (0, 1)]
        make.put(evaluation, "generated_answers", make.table(GENERATED_ANSWERS, trials))
        assert check_contract(evaluation, GENERATED_ANSWERS, TARGET).passed
        make.put(evaluation, "generated_answers", make.table(GENERATED_ANSWERS, [*trials, trials[0]]))
        outcome = check_contract(evaluation, GENERATED_ANSWERS, TARGET)
        assert (outcome.passed, outcome.summary, outcome.worst) == (False, "1 key stands more than once", ["a"])

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
        assert (two.passed, two.summary, two.worst) == (False, "2 of 20 calls failed (10.0%, bound 5.0%)", ["e0", "e1"])
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
        assert (outcome.passed, outcome.worst, outcome.figures) == (False, ["b"], {"unsound": 1, "bound": 0})

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
