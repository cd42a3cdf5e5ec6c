"""The sensor that tells people of a suite's failed runs, whoever started them: once per failure, not without end."""
# pyright: reportUnknownMemberType=false
# Dagster types the metadata of sensors and schedules only in part.

from __future__ import annotations

import datetime as dt

import dagster as dg

from rag_eval_assets.automation.notify import FailedRun, Fault, bounded, open_notifier
from rag_eval_assets.orchestration.tags import notified_tags
from rag_eval_assets.suite.automation import Notify
from rag_eval_assets.suite.load import LoadedSuite

_PARTITION_TAG = "dagster/partition"
_WILL_RETRY_TAG = "dagster/will_retry"
_CHECK_FAILED = "DagsterAssetCheckFailedError"

SENT, REPEATED, TOO_MANY = "sent", "repeated", "too_many"


def build_failure_sensor(suite: LoadedSuite, config: Notify) -> dg.SensorDefinition:
    """The sensor of a suite's failed runs. It watches all jobs: backfills and the page use one that is nobody's."""

    @dg.run_failure_sensor(
        name=f"{suite.slug}_failure_sensor",
        default_status=dg.DefaultSensorStatus.RUNNING if config.running else dg.DefaultSensorStatus.STOPPED,
        description=f"Tells of failed runs of {suite.name} ({config.kind}): what failed, for which date and target.",
    )
    def run_failed(context: dg.RunFailureSensorContext) -> None:
        # It returns no SkipReason: where one tick sees several runs, Dagster takes reasons for all of them or for none.
        failed = describe(suite, config, context)
        if failed is None:
            context.log.info("run %s failed, but nothing of %s", context.dagster_run.run_id, suite.name)
            return
        outcome = _outcome(context.instance, suite, config, failed)
        if outcome == SENT:
            open_notifier(config, context.log.error).send(failed)
        context.instance.add_run_tags(failed.run_id, notified_tags(suite, failed.digest, outcome))
        context.log.info("%s: %s; %s", outcome.replace("_", " "), failed.headline(), failed.lines()[0])

    return run_failed


def describe(suite: LoadedSuite, config: Notify, context: dg.RunFailureSensorContext) -> FailedRun | None:
    """What failed of a suite in a run; None where the run was not about it, or only other suites' steps failed."""
    run = context.dagster_run
    if not _is_about(suite, run):
        return None
    failures = _step_failures(context)
    own = [(step, fault) for step, fault in failures if step.startswith(f"{suite.slug}__")]
    if failures and not own:
        return None
    retried = run.tags.get(_WILL_RETRY_TAG) == "true"
    if not own:
        own = [("", Fault("run", context.failure_event.message or "it ended without saying why"))]
    faults = [fault for _, fault in own]
    if retried:
        faults.append(Fault("run", "Dagster executes it again by itself"))
    kept, more = bounded(faults)
    return FailedRun(
        suite=suite.name,
        run_date=run.tags.get(_PARTITION_TAG),
        targets=tuple(
            slug for slug in suite.target_slugs.values() if any(_is_of(step, suite, slug) for step, _ in own)
        ),
        faults=kept,
        more=more,
        run_id=run.run_id,
        link=f"{config.page.rstrip('/')}/runs/{run.run_id}",
    )


def _is_about(suite: LoadedSuite, run: dg.DagsterRun) -> bool:
    if run.asset_selection:
        return any(key.path[0] == suite.slug for key in run.asset_selection)
    return run.job_name.startswith(f"{suite.slug}_")


def _is_of(step: str, suite: LoadedSuite, target_slug: str) -> bool:
    return step.startswith(f"{suite.slug}__{target_slug}__")


def _step_failures(context: dg.RunFailureSensorContext) -> list[tuple[str, Fault]]:
    """Step and what it said, in the order of the log; of a failed check what the check said."""
    run_id = context.dagster_run.run_id
    entries = context.instance.all_logs(run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    checks = [entry.dagster_event.asset_check_evaluation_data for entry in entries if entry.dagster_event]
    found: list[tuple[str, Fault]] = []
    for check in checks:
        if check.blocking and not check.passed:
            step = "__".join([*check.asset_key.path, check.check_name])
            where = f"check {check.check_name} of {check.asset_key.to_user_string()}"
            found.append((step, Fault(where, check.description or "failed")))
    for event in context.get_step_failure_events():
        failure = event.step_failure_data
        error = failure.error
        if error is not None and error.cls_name == _CHECK_FAILED:
            continue
        said = failure.user_failure_data.description if failure.user_failure_data else None
        what = said or ((error.cause or error).message if error else "failed")
        step = event.step_key or ""
        found.append((step, Fault(step.replace("__", "/"), what)))
    return found


def _outcome(instance: dg.DagsterInstance, suite: LoadedSuite, config: Notify, failed: FailedRun) -> str:
    """Whether a message is sent. What has been sent stands in the runs' tags, so that a restart forgets nothing."""
    now = dt.datetime.now(dt.UTC)
    window = now - dt.timedelta(minutes=config.repeat_after_minutes)
    same = dg.RunsFilter(tags=notified_tags(suite, failed.digest, SENT), updated_after=window)
    if instance.get_runs(same, limit=1):
        return REPEATED
    any_failure = dg.RunsFilter(tags=notified_tags(suite, None, SENT), updated_after=now - dt.timedelta(hours=1))
    sent = instance.get_runs(any_failure, limit=config.at_most_per_hour)
    return TOO_MANY if len(sent) >= config.at_most_per_hour else SENT
