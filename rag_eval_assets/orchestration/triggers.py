"""What starts a run of a suite by itself: its schedule, and its corpus sensor. Both are about today, UTC."""
# pyright: reportUnknownMemberType=false
# Dagster types the metadata of sensors and schedules only in part.

from __future__ import annotations

import datetime as dt
import time

import dagster as dg

from rag_eval_assets.automation.fingerprint import fingerprint, watched
from rag_eval_assets.automation.settle import Seen, look, run_key
from rag_eval_assets.errors import EvalError
from rag_eval_assets.orchestration.tags import CORPUS_GENERATION_TAG, SUITE_TAG, TRIGGER_TAG, WHY_TAG, suite_tags
from rag_eval_assets.suite.automation import CorpusSensor, Schedule
from rag_eval_assets.suite.load import LoadedSuite

Tick = dg.RunRequest | dg.SkipReason


def build_schedule(
    suite: LoadedSuite, schedule: Schedule, job: dg.UnresolvedAssetJobDefinition
) -> dg.ScheduleDefinition:
    """The schedule of a suite: at each tick a run for the day of the tick, also where it is made up for later."""

    @dg.schedule(
        job=job,
        cron_schedule=schedule.cron,
        name=f"{suite.slug}_schedule",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING if schedule.running else dg.DefaultScheduleStatus.STOPPED,
        description=f"Evaluates {suite.name} for the day of the tick (UTC).",
    )
    def scheduled(context: dg.ScheduleEvaluationContext) -> Tick:
        day = context.scheduled_execution_time.astimezone(dt.UTC).date()
        return _before_the_first(suite, day) or dg.RunRequest(
            partition_key=day.isoformat(), tags={**suite_tags(suite), TRIGGER_TAG: "schedule"}
        )

    return scheduled


def build_corpus_sensor(
    suite: LoadedSuite, config: CorpusSensor, job: dg.UnresolvedAssetJobDefinition
) -> dg.SensorDefinition:
    """The sensor of a suite's corpus: a run for today once a change has settled.

    Raises:
        ConfigurationError: there is nothing to look at.
    """
    watched(suite)

    @dg.sensor(
        name=f"{suite.slug}_corpus_sensor",
        job=job,
        minimum_interval_seconds=config.interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING if config.running else dg.DefaultSensorStatus.STOPPED,
        description=f"Evaluates {suite.name} for today after a change of its corpus that stays for "
        f"{config.settle_seconds} s. The first look only records.",
    )
    def corpus_changed(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before = Seen.from_cursor(context.cursor)
        try:
            version = fingerprint(suite)
        except EvalError as error:
            # The cursor stays: a corpus that cannot be read has not changed.
            return dg.SensorResult(skip_reason=f"the corpus cannot be read: {error}")
        now = time.time()
        known = _last_generation(context.instance, suite) if before is None else 0
        decision = look(before, version, now=now, settle_seconds=config.settle_seconds, generation=known)
        context.log.info(decision.why)
        today = dt.datetime.fromtimestamp(now, dt.UTC).date()
        too_early = _before_the_first(suite, today)
        if too_early is not None:
            return dg.SensorResult(skip_reason=too_early)
        if not decision.due:
            return dg.SensorResult(skip_reason=decision.why, cursor=decision.seen.to_cursor())
        tags = {
            **suite_tags(suite),
            TRIGGER_TAG: "corpus",
            CORPUS_GENERATION_TAG: str(decision.seen.generation),
            WHY_TAG: decision.why,
        }
        request = dg.RunRequest(
            run_key=run_key(suite.slug, today, decision.seen.generation), partition_key=today.isoformat(), tags=tags
        )
        return dg.SensorResult([request], cursor=decision.seen.to_cursor())

    return corpus_changed


def _before_the_first(suite: LoadedSuite, day: dt.date) -> dg.SkipReason | None:
    first = suite.suite.run.start_date
    return dg.SkipReason(f"{day} lies before the suite's first run date {first}") if day < first else None


def _last_generation(instance: dg.DagsterInstance, suite: LoadedSuite) -> int:
    """The generation of the newest run that a change of the corpus started.

    After somebody reset the cursor, counting anew would give run keys that Dagster has seen, and so no runs.
    """
    mine = dg.RunsFilter(tags={SUITE_TAG: suite_tags(suite)[SUITE_TAG], TRIGGER_TAG: "corpus"})
    newest = instance.get_runs(mine, limit=1)
    return int(newest[0].tags.get(CORPUS_GENERATION_TAG, 0)) if newest else 0
