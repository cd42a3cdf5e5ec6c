"""Blueprints made into Dagster assets, one run-date partition each.

No `from __future__ import annotations` here: Dagster reads the annotations of asset functions at run time.
"""

import datetime as dt
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from rag_eval_assets.errors import ConfigurationError, EvalError, InfrastructureError
from rag_eval_assets.evaluation.checks import check_contract
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.reporting import EVAL_REPORT, Materialized, RunIdentity
from rag_eval_assets.orchestration.compute import GPU_OP_TAGS, GPU_POOL, worker_pid
from rag_eval_assets.orchestration.instance import tag_run
from rag_eval_assets.orchestration.lineage import SHARED, Blueprint, asset_key, input_keys
from rag_eval_assets.orchestration.metadata import SAMPLE, definition_metadata, is_sample, run_metadata, seconds_of
from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.orchestration.session import active_session
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import TABLES


def run_dates(suite: LoadedSuite) -> dg.DailyPartitionsDefinition:
    """One partition per day, UTC, today included (`end_offset=1`), so that today can be evaluated today."""
    return dg.DailyPartitionsDefinition(start_date=suite.suite.run.start_date.isoformat(), timezone="UTC", end_offset=1)


def build_asset(suite: LoadedSuite, blueprint: Blueprint) -> dg.AssetsDefinition:
    """The asset of one blueprint.

    It has no backfill policy: a backfill then makes one run per date, in which a failed blocking check stops what is
    downstream; with range runs it would not.
    """
    keys = input_keys(suite, blueprint)
    target_slug = None if blueprint.target is None else suite.target_slugs[blueprint.target]

    @dg.asset(
        key=asset_key(suite, blueprint.name, blueprint.target),
        deps=list(keys.values()),
        partitions_def=run_dates(suite),
        group_name=suite.slug if target_slug is None else f"{suite.slug}/{target_slug}",
        description=f"{blueprint.spec.description}\n\nGrain: {blueprint.spec.grain}.",
        owners=list(suite.suite.owners),
        kinds=set(blueprint.kinds),
        code_version=blueprint.code_version,
        metadata=definition_metadata(blueprint.spec, keys),
        pool=GPU_POOL if blueprint.heavy else None,
        op_tags=GPU_OP_TAGS if blueprint.heavy else None,
        freshness_policy=_freshness(suite) if blueprint.name == EVAL_REPORT else None,
    )
    def table(context: dg.AssetExecutionContext, evaluation: EvaluationResource) -> dg.MaterializeResult[Any]:
        with failures_reported():
            tag_run(context.instance, context.run.run_id, worker_pid())
            return _materialize(context, evaluation.open(context, suite), blueprint, keys)

    return table


def _freshness(suite: LoadedSuite) -> dg.FreshnessPolicy | None:
    """How old the newest report of any run date may be; Dagster knows no freshness of single partitions."""
    freshness = suite.suite.freshness
    if freshness is None:
        return None
    warn = freshness.warn_after_hours
    return dg.FreshnessPolicy.time_window(
        fail_window=dt.timedelta(hours=freshness.fail_after_hours),
        warn_window=None if warn is None else dt.timedelta(hours=warn),
    )


def _materialize(
    context: dg.AssetExecutionContext, evaluation: Evaluation, blueprint: Blueprint, keys: Mapping[str, dg.AssetKey]
) -> dg.MaterializeResult[Any]:
    started = time.perf_counter()
    require_sound_inputs(evaluation, blueprint)
    outcome = blueprint.make(evaluation, lambda: _identity(context, keys, sample=evaluation.is_sample))
    sample = f"first {evaluation.limit} examples, stored under {evaluation.namespace}" if evaluation.is_sample else None
    if outcome is None:
        return dg.MaterializeResult(metadata={SAMPLE: "nothing was made"}, data_version=dg.DataVersion(SAMPLE))
    version = outcome.stored.data_version
    return dg.MaterializeResult(
        metadata=run_metadata(outcome, time.perf_counter() - started, sample=sample),
        data_version=dg.DataVersion(f"sample-{version}" if sample else version),
    )


def require_sound_inputs(evaluation: Evaluation, blueprint: Blueprint) -> None:
    """Raise InfrastructureError where a table that is read here breaks its contract.

    Within a run the blocking check has stopped what follows. A backfill's re-execution *from failure*, and a person who
    materializes a single asset, begin behind the check: Dagster counts the table as made, and nothing would stop them.
    """
    for name in blueprint.inputs:
        spec = TABLES.get(name)
        if spec is None:
            continue
        outcome = check_contract(evaluation, spec, None if name in SHARED else blueprint.target)
        if not outcome.passed:
            raise InfrastructureError(
                f"{name!r} of {evaluation.run_date} breaks its contract: {outcome.summary}",
                fix="Materialize it again, with all that is downstream of it",
            )


def _identity(context: dg.AssetExecutionContext, keys: Mapping[str, dg.AssetKey], *, sample: bool) -> RunIdentity:
    """Which run made each input of this date, and when, as the event log knows it."""
    found = {name: _newest(context, key, sample=sample) for name, key in keys.items()}
    return RunIdentity(context.run.run_id, {name: made for name, made in found.items() if made is not None})


def _newest(context: dg.AssetExecutionContext, key: dg.AssetKey, *, sample: bool) -> Materialized | None:
    """The newest materialization of this date. Samples and whole evaluations read different tables of one asset."""
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[context.partition_key])
    cursor: str | None = None
    while True:
        page = context.instance.fetch_materializations(wanted, limit=20, cursor=cursor)
        for record in page.records:
            made = record.asset_materialization
            if made is not None and is_sample(made.metadata) == sample:
                at = dt.datetime.fromtimestamp(record.timestamp, dt.UTC)
                return Materialized(record.run_id, at, seconds_of(made.metadata))
        if not page.has_more:
            return None
        cursor = page.cursor


@contextmanager
def failures_reported() -> Generator[None]:
    """Turns the project's own errors into one clear Dagster failure and tells the command line about them."""
    try:
        yield
    except EvalError as error:
        running = active_session()
        if running:
            running.failures.append(error)
        # The same broken configuration fails the same way again; a service may be back.
        raise dg.Failure(str(error), allow_retries=not isinstance(error, ConfigurationError)) from error
