"""What starts a run by itself: schedule and corpus sensor, evaluated as Dagster's daemon does it."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration import triggers
from rag_eval_assets.orchestration.build import build_definitions, job_name
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets_tests.servers.bucket import REGION, S3Server, variables

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


@dataclass
class Looking:
    """A corpus sensor with its cursor, an instance that keeps its runs, and a clock that is set by hand."""

    suite: LoadedSuite
    sensor: dg.SensorDefinition
    instance: dg.DagsterInstance
    docs: Path
    now: float
    cursor: str | None = None

    def look(self, after: float = 60) -> dg.SensorResult | Any:
        self.now += after
        context = dg.build_sensor_context(
            self.instance, self.cursor, sensor_name=self.sensor.name, repository_def=self._repository()
        )
        data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor if data.cursor is not None else self.cursor
        return data

    def write(self, text: str) -> None:
        (self.docs / "a.txt").write_text(text, encoding="utf-8")

    def _repository(self) -> dg.RepositoryDefinition:
        return build_definitions([self.suite]).get_repository_def()


@pytest.fixture
def looking(place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Looking]:
    def make(watch: dict[str, str] | None = None, **changes: Any) -> Looking:
        docs = place.folder / "docs"
        docs.mkdir()
        config = {"watch": watch or {"folder": str(docs)}, "interval_seconds": 45, "settle_seconds": 30}
        suite = place.suite(corpus_sensor=config, **changes)
        sensor = build_definitions([suite]).resolve_sensor_def("tiny_corpus_sensor")
        made = Looking(suite, sensor, place.instance, docs, NOON.timestamp())
        made.write("A")
        monkeypatch.setattr(triggers.time, "time", lambda: made.now)
        return made

    return make


class TestCorpusSensor:
    def test_the_first_look_only_records_and_says_so(self, looking) -> None:
        sensor = looking()
        tick = sensor.look()
        assert tick.run_requests == []
        assert tick.skip_message.startswith("first look: the corpus is at ")
        assert sensor.look().skip_message.startswith("unchanged at ")

    def test_a_bucket_that_may_not_be_listed_is_a_skip_that_names_the_action(
        self, looking, s3_server: S3Server, no_aws: pytest.MonkeyPatch
    ) -> None:
        bucket = s3_server.bucket()
        settings = {"AWS_ENDPOINT_URL": s3_server.url, "AWS_DEFAULT_REGION": REGION}
        for name, value in {**settings, **variables(s3_server.user(None))}.items():
            no_aws.setenv(name, value)
        tick = looking({"s3": f"s3://{bucket}/docs/"}).look()
        assert tick.run_requests == []
        said = f"the corpus cannot be read: s3:ListBucket on s3://{bucket}/docs/ failed: denied (AccessDenied)"
        assert tick.skip_message.startswith(said)

    def test_a_change_that_stays_gives_one_run_for_today(self, looking) -> None:
        sensor = looking()
        sensor.look()
        sensor.write("B")
        assert "a run follows if it stays so for 30 s" in sensor.look().skip_message
        tick = sensor.look()
        (request,) = tick.run_requests
        assert (request.run_key, request.partition_key) == ("tiny-2026-03-01-1", "2026-03-01")
        assert request.tags["rag_eval/suite_sha256"] == sensor.suite.sha256[:16]
        assert request.tags["rag_eval/trigger"] == "corpus"
        assert request.tags["rag_eval/why"].endswith("and stayed so; generation 1")
        assert sensor.look().run_requests == []

    def test_going_back_and_forth_on_one_date_gives_keys_that_dagster_has_not_seen(self, looking) -> None:
        sensor = looking()
        keys = []
        for version in "ABAB":
            sensor.write(version)
            keys += [request.run_key for _ in range(2) for request in sensor.look().run_requests]
        assert keys == ["tiny-2026-03-01-1", "tiny-2026-03-01-2", "tiny-2026-03-01-3"]

    def test_a_deleted_folder_is_a_skip_and_its_return_no_change(self, looking) -> None:
        sensor = looking()
        sensor.look()
        kept = sensor.docs.with_name("kept")
        sensor.docs.rename(kept)
        tick = sensor.look()
        assert tick.skip_message.startswith("the corpus cannot be read: 'docs' cannot be read")
        assert tick.run_requests == []
        sensor.docs.mkdir()
        assert "holds no file" in sensor.look().skip_message
        shutil.rmtree(sensor.docs)
        kept.rename(sensor.docs)
        assert sensor.look().skip_message.startswith("unchanged at ")

    def test_a_change_while_it_settles_over_midnight_is_about_the_new_day(self, looking) -> None:
        sensor = looking()
        sensor.look(11.5 * 3600)
        sensor.write("B")
        sensor.look()
        (request,) = sensor.look(3600).run_requests
        assert request.partition_key == "2026-03-02"

    def test_after_a_reset_of_the_cursor_generations_go_on(self, looking) -> None:
        """Dagster remembers run keys for ever: counting anew would start no run at all."""
        sensor = looking()
        for version in "AB":
            sensor.write(version)
            ticks = [sensor.look(), sensor.look()]
        (request,) = ticks[-1].run_requests
        job = build_definitions([sensor.suite]).resolve_job_def(job_name(sensor.suite))
        sensor.instance.create_run_for_job(job, tags={**request.tags, "dagster/partition": "2026-03-01"})
        sensor.cursor = None
        keys = []
        for version in "CD":
            sensor.write(version)
            keys += [made.run_key for _ in range(2) for made in sensor.look().run_requests]
        assert keys == ["tiny-2026-03-01-2"]

    def test_before_the_first_run_date_it_waits(self, looking) -> None:
        sensor = looking(run={"start_date": "2026-03-05"})
        assert sensor.look().skip_message == "2026-03-01 lies before the suite's first run date 2026-03-05"
        assert sensor.cursor is None

    def test_it_is_off_unless_the_suite_says_so(self, looking, place) -> None:
        sensor = looking()
        assert sensor.sensor.default_status == dg.DefaultSensorStatus.STOPPED
        assert sensor.sensor.minimum_interval_seconds == 45
        running = place.suite(corpus_sensor={"watch": {"folder": "x"}, "running": True})
        made = build_definitions([running]).resolve_sensor_def("tiny_corpus_sensor")
        assert made.default_status == dg.DefaultSensorStatus.RUNNING

    def test_a_corpus_that_cannot_change_is_refused_when_the_suite_is_loaded(self, place) -> None:
        suite = place.suite(corpus={"source": "sample"}, corpus_sensor={})
        with pytest.raises(ConfigurationError, match="nothing to look at"):
            build_definitions([suite])


class TestSchedule:
    @staticmethod
    def tick(suite: LoadedSuite, at: dt.datetime) -> Any:
        definitions = build_definitions([suite])
        context = dg.build_schedule_context(
            scheduled_execution_time=at, repository_def=definitions.get_repository_def()
        )
        return definitions.resolve_schedule_def("tiny_schedule").evaluate_tick(context)

    @pytest.mark.parametrize(
        ("at", "day"),
        [
            (dt.datetime(2026, 3, 1, 0, 0, tzinfo=dt.UTC), "2026-03-01"),
            (dt.datetime(2026, 3, 1, 23, 59, tzinfo=dt.UTC), "2026-03-01"),
            (dt.datetime(2026, 3, 2, 0, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2026-03-01"),
        ],
    )
    def test_a_tick_evaluates_its_own_day_in_utc(self, place, at: dt.datetime, day: str) -> None:
        suite = place.suite(schedule={"cron": "0 6 * * *"})
        (request,) = self.tick(suite, at).run_requests
        assert request.partition_key == day
        assert request.tags["dagster/partition"] == day
        assert request.tags["rag_eval/suite"] == "tiny"
        assert request.tags["rag_eval/suite_sha256"] == suite.sha256[:16]
        assert request.tags["rag_eval/trigger"] == "schedule"

    def test_before_the_first_run_date_it_waits(self, place) -> None:
        suite = place.suite(schedule={"cron": "0 6 * * *"}, run={"start_date": "2026-03-05"})
        tick = self.tick(suite, NOON)
        assert tick.run_requests == []
        assert "before the suite's first run date" in tick.skip_message

    def test_it_is_as_the_suite_says(self, place) -> None:
        made = build_definitions([place.suite(schedule={"cron": "30 4 * * mon", "running": True})])
        schedule = made.resolve_schedule_def("tiny_schedule")
        assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 4 * * mon", "UTC")
        assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
        assert schedule.job_name == "tiny_evaluation"

    def test_a_suite_without_automation_has_none(self, place) -> None:
        repository = build_definitions([place.suite()]).get_repository_def()
        assert (repository.schedule_defs, repository.sensor_defs) == ([], [])


def test_the_freshness_of_the_report_is_what_the_suite_says(place) -> None:
    suite = place.suite(freshness={"fail_after_hours": 30, "warn_after_hours": 26})
    graph = build_definitions([suite]).resolve_asset_graph()
    policies = {key.path[-1]: graph.get(key).freshness_policy for key in graph.get_all_asset_keys()}
    assert policies.pop("eval_report") == dg.FreshnessPolicy.time_window(
        fail_window=dt.timedelta(hours=30), warn_window=dt.timedelta(hours=26)
    )
    assert set(policies.values()) == {None}


def test_a_re_scoring_never_asks_the_target(place) -> None:
    suite = place.suite()
    assert place.materialize(suite).success
    asked = len(place.calls)
    answers = place.files("tables/tiny/pipeline/generated_answers")
    job = build_definitions([suite]).resolve_job_def("tiny_rescore")
    result = job.execute_in_process(instance=place.instance, partition_key="2026-03-01")
    assert result.success
    assert len(place.calls) == asked
    assert place.files("tables/tiny/pipeline/generated_answers") == answers
    made = {event.asset_key.path[-1] for event in result.get_asset_materialization_events()}
    assert made == {"retrieval_matches", "bertscore", "sentence_cosine", "eval_report", "score_history"}
