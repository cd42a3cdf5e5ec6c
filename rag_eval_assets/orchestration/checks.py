"""Asset checks of each table, per run date. The table contract blocks what is downstream; the others as the suite says.

No `from __future__ import annotations` here: Dagster reads the annotations of check functions at run time.
"""

from collections.abc import Callable

import dagster as dg

from rag_eval_assets.evaluation.checks import (
    CheckOutcome,
    check_contract,
    check_delivery,
    check_error_rate,
    check_gates,
    check_scores,
)
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.destination import destination
from rag_eval_assets.evaluation.drift import check_drift
from rag_eval_assets.evaluation.quality import check_completeness, check_corpus_coverage
from rag_eval_assets.evaluation.reporting import EVAL_REPORT
from rag_eval_assets.evaluation.scorers import scorer_names
from rag_eval_assets.orchestration.assets import failures_reported, run_dates
from rag_eval_assets.orchestration.lineage import Blueprint, asset_key
from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import GENERATED_ANSWERS, RETRIEVAL_MATCHES, SCORE_HISTORY

Check = Callable[[Evaluation], CheckOutcome]


def build_checks(suite: LoadedSuite, blueprint: Blueprint) -> list[dg.AssetChecksDefinition]:
    """The checks of one blueprint's asset."""
    spec, target, chosen = blueprint.spec, blueprint.target, suite.suite.checks
    made: list[tuple[str, Check, str | None, bool]] = []
    if blueprint.name != SCORE_HISTORY.name:  # its files are copies of the pointer, which is checked
        made.append(("table_contract", lambda e: check_contract(e, spec, target), check_contract.__doc__, True))
    if target is not None and blueprint.name == GENERATED_ANSWERS.name:
        blocks = chosen.error_rate.blocking
        made.append(("error_rate", lambda e: check_error_rate(e, target), check_error_rate.__doc__, blocks))
    if target is not None and blueprint.name == RETRIEVAL_MATCHES.name:
        blocks = chosen.corpus_coverage.blocking
        made.append(("corpus_coverage", check_corpus_coverage, check_corpus_coverage.__doc__, blocks))
    if target is not None and blueprint.name in scorer_names(suite):
        blocks = chosen.sound_scores.blocking
        made.append(("sound_scores", lambda e: check_scores(e, spec, target), check_scores.__doc__, blocks))
        blocks = chosen.completeness.blocking
        complete: Check = lambda e: check_completeness(e, spec, target)  # noqa: E731
        made.append(("completeness", complete, check_completeness.__doc__, blocks))
    if target is not None and blueprint.name == EVAL_REPORT:
        made.append(("gates", lambda e: check_gates(e, target), check_gates.__doc__, False))
        made.append(("drift", lambda e: check_drift(e, target), check_drift.__doc__, chosen.drift.blocking))
    checks = [_check(suite, blueprint, name, text, check, blocking=blocks) for name, check, text, blocks in made]
    if target is not None and blueprint.name == EVAL_REPORT and destination(suite).bucket is not None:
        checks.append(_delivery_check(suite, blueprint, target))
    return checks


def _check(
    suite: LoadedSuite,
    blueprint: Blueprint,
    name: str,
    description: str | None,
    check: Check,
    *,
    blocking: bool = False,
) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset_key(suite, blueprint.name, blueprint.target),
        name=name,
        description=description,
        blocking=blocking,
        partitions_def=run_dates(suite),
    )
    def checked(context: dg.AssetCheckExecutionContext, evaluation: EvaluationResource) -> dg.AssetCheckResult:
        outcome = _outcome(check, evaluation.open(context, suite), blocking=blocking)
        return dg.AssetCheckResult(
            passed=outcome.passed,
            severity=dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN,
            description=outcome.summary,
            metadata={
                **{figure: float(value) for figure, value in outcome.figures.items()},
                **({"worst": dg.MetadataValue.json(outcome.worst)} if outcome.worst else {}),
            },
        )

    return checked


def _delivery_check(suite: LoadedSuite, blueprint: Blueprint, target: str) -> dg.AssetChecksDefinition:
    """Fails the run where the report is still in the spool, which the asset itself must not do: the history is due."""

    @dg.asset_check(
        asset=asset_key(suite, blueprint.name, blueprint.target),
        name="delivered",
        description="The report lies in its bucket.",
        partitions_def=run_dates(suite),
    )
    def delivered(context: dg.AssetCheckExecutionContext, evaluation: EvaluationResource) -> dg.AssetCheckResult:
        with failures_reported():
            outcome = check_delivery(evaluation.open(context, suite), target)
        return dg.AssetCheckResult(passed=outcome.passed, description=outcome.summary)

    return delivered


def _outcome(check: Check, evaluation: Evaluation, *, blocking: bool) -> CheckOutcome:
    """What a check says. One that only warns must not fail the run where it cannot be made; it then warns of that."""
    try:
        return check(evaluation)
    except Exception as error:
        if blocking:
            raise
        return CheckOutcome(False, f"could not be checked: {type(error).__name__}: {error}")
