"""Asset checks of each table, per run date. Only the table contract blocks what is downstream; the others warn.

No `from __future__ import annotations` here: Dagster reads the annotations of check functions at run time.
"""

from collections.abc import Callable

import dagster as dg

from rag_eval_assets.evaluation import checks
from rag_eval_assets.evaluation.checks import CheckOutcome
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.destination import destination
from rag_eval_assets.evaluation.reporting import EVAL_REPORT
from rag_eval_assets.evaluation.scorers import scorer_names
from rag_eval_assets.orchestration.assets import failures_reported, run_dates
from rag_eval_assets.orchestration.lineage import Blueprint, asset_key
from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import GENERATED_ANSWERS, SCORE_HISTORY

Check = Callable[[Evaluation], CheckOutcome]


def build_checks(suite: LoadedSuite, blueprint: Blueprint) -> list[dg.AssetChecksDefinition]:
    """The checks of one blueprint's asset."""
    spec, target = blueprint.spec, blueprint.target
    made: list[dg.AssetChecksDefinition] = []
    if blueprint.name != SCORE_HISTORY.name:  # its files are copies of the pointer, which is checked
        contract: Check = lambda e: checks.check_contract(e, spec, target)  # noqa: E731
        made.append(_check(suite, blueprint, "table_contract", checks.check_contract.__doc__, contract, blocking=True))
    if target is not None and blueprint.name == GENERATED_ANSWERS.name:
        errors: Check = lambda e: checks.check_error_rate(e, target)  # noqa: E731
        made.append(_check(suite, blueprint, "error_rate", checks.check_error_rate.__doc__, errors))
    if target is not None and blueprint.name in scorer_names(suite):
        sound: Check = lambda e: checks.check_scores(e, spec, target)  # noqa: E731
        made.append(_check(suite, blueprint, "sound_scores", checks.check_scores.__doc__, sound))
    if target is not None and blueprint.name == EVAL_REPORT:
        met: Check = lambda e: checks.check_gates(e, target)  # noqa: E731
        made.append(_check(suite, blueprint, "gates", checks.check_gates.__doc__, met))
        drift: Check = lambda e: checks.check_drift(e, target)  # noqa: E731
        made.append(_check(suite, blueprint, "drift", checks.check_drift.__doc__, drift))
        if destination(suite).bucket is not None:
            made.append(_delivery_check(suite, blueprint, target))
    return made


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
            outcome = checks.check_delivery(evaluation.open(context, suite), target)
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
