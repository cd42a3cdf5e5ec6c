"""How much of a date was scored, and whether the corpus holds what retrieval should find."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.quality import check_completeness, check_corpus_coverage
from rag_eval_assets.suite.automation import Checks
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES, TableSpec

TARGET = "Base line"


def with_checks(evaluation: Evaluation, **checks: Any) -> Evaluation:
    content = evaluation.suite.suite.model_copy(update={"checks": Checks.model_validate(checks)})
    return dataclasses.replace(evaluation, suite=dataclasses.replace(evaluation.suite, suite=content))


class TestCompleteness:
    @staticmethod
    def scored(make: Any, spec: TableSpec, *statuses: str) -> pa.Table:
        rows = [{"example_id": f"e{n:02}", "status": status} for n, status in enumerate(statuses)]
        return make.table(spec, rows)

    def test_rows_without_a_score_are_counted_and_named(self, evaluation: Evaluation, make, score_spec) -> None:
        make.put(evaluation, score_spec.name, self.scored(make, score_spec, *["scored"] * 19, "target_error"))
        outcome = check_completeness(evaluation, score_spec, TARGET)
        assert outcome.passed
        assert outcome.summary == "19 of 20 examples with a reference have a score (95.0%, bound 95.0%)"
        assert outcome.figures == {"completeness": 0.95, "bound": 0.95, "scorable": 20}
        assert outcome.worst == ["e19"]

    @pytest.mark.parametrize("status", ["target_error", "scorer_error", "empty_answer", "no_answer", "untokenizable"])
    def test_too_many_warn(self, evaluation: Evaluation, make, score_spec, status: str) -> None:
        make.put(evaluation, score_spec.name, self.scored(make, score_spec, *["scored"] * 3, *[status] * 12))
        outcome = check_completeness(evaluation, score_spec, TARGET)
        assert (outcome.passed, outcome.figures["completeness"]) == (False, 0.2)
        assert outcome.worst == [f"e{n:02}" for n in range(3, 13)], "ten of the twelve"

    def test_examples_without_a_reference_count_neither_way(self, evaluation: Evaluation, make, score_spec) -> None:
        make.put(
            evaluation, score_spec.name, self.scored(make, score_spec, "scored", "no_reference", "empty_reference")
        )
        assert check_completeness(evaluation, score_spec, TARGET).figures["scorable"] == 1
        make.put(evaluation, score_spec.name, self.scored(make, score_spec, "no_reference"))
        assert check_completeness(evaluation, score_spec, TARGET).summary == "no example has a reference answer"

    def test_the_suite_sets_the_bound(self, evaluation: Evaluation, make, score_spec) -> None:
        make.put(evaluation, score_spec.name, self.scored(make, score_spec, "scored", "target_error"))
        assert check_completeness(with_checks(evaluation, completeness={"at_least": 0.5}), score_spec, TARGET).passed
        assert not check_completeness(
            with_checks(evaluation, completeness={"at_least": 0.51}), score_spec, TARGET
        ).passed


class TestCorpusCoverage:
    @staticmethod
    def put(evaluation: Evaluation, make: Any, documents: list[str], contexts: list[str | None]) -> None:
        make.put(evaluation, "corpus", make.table(CORPUS, [{"document_id": d} for d in documents]), None)
        rows = [{"example_id": f"e{n}", "context_id": context} for n, context in enumerate(contexts)]
        make.put(evaluation, "eval_examples", make.table(EVAL_EXAMPLES, rows), None)

    def test_contexts_that_are_not_in_the_corpus_are_named(self, evaluation: Evaluation, make) -> None:
        self.put(evaluation, make, ["mill", "bees"], ["mill", "bees", "gone", None])
        outcome = check_corpus_coverage(evaluation)
        assert (outcome.passed, outcome.worst) == (False, ["e2"])
        assert outcome.summary == "2 of 3 contexts are in the corpus (66.7%, bound 95.0%)"
        assert outcome.figures == {"coverage": pytest.approx(2 / 3), "bound": 0.95, "judged": 3}

    def test_the_suite_sets_the_bound(self, evaluation: Evaluation, make) -> None:
        self.put(evaluation, make, ["mill"], ["mill", "gone"])
        assert check_corpus_coverage(with_checks(evaluation, corpus_coverage={"at_least": 0.5})).passed

    @pytest.mark.parametrize(
        ("documents", "contexts", "summary"),
        [
            ([], ["mill"], "the suite names no corpus"),
            (["mill"], [None, None], "no example names the document of its context"),
        ],
    )
    def test_what_cannot_be_told_is_no_fault(
        self, evaluation: Evaluation, make, documents: list[str], contexts: list[str | None], summary: str
    ) -> None:
        self.put(evaluation, make, documents, contexts)
        outcome = check_corpus_coverage(evaluation)
        assert (outcome.passed, outcome.summary) == (True, summary)
