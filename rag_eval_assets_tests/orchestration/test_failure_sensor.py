"""People are told of failed runs: of what failed, for which date and target, once, and not without end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import pytest

from rag_eval_assets.automation.notify import FailedRun
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation import stages
from rag_eval_assets.orchestration import failures
from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.suite.load import LoadedSuite

QUESTIONS = (
    "When does the mill open?",
    "Who keeps the bees?",
    "How often does the ferry leave?",
    "Where are the hives?",
)
DATES = ("2026-03-01", "2026-03-02", "2026-03-03")


@dataclass
class Told:
    """A failure sensor with its cursor, and the messages that it sent."""

    sensor: dg.SensorDefinition
    instance: dg.DagsterInstance
    messages: list[FailedRun] = field(default_factory=list[FailedRun])
    fails: bool = False
    cursor: str | None = None

    def send(self, failed: FailedRun) -> None:
        if self.fails:
            raise InfrastructureError("nobody answers")
        self.messages.append(failed)

    def tick(self) -> Any:
        context = dg.build_sensor_context(self.instance, self.cursor, sensor_name=self.sensor.name)
        data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor
        return data

    def ticks(self) -> list[str]:
        """Look until nothing new is found; what became of the failed runs, oldest first, by their tags."""
        before = None
        while self.cursor != before:
            before = self.cursor
            assert not any(reaction.error for reaction in self.tick().dagster_run_reactions or [])
        key = f"rag_eval.notified/{self.sensor.name.removesuffix('_failure_sensor')}"
        return [run.tags.get(key, "-") for run in reversed(self.instance.get_runs())]


@pytest.fixture
def told(place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Told]:
    def make(suite: LoadedSuite) -> Told:
        sensor = build_definitions([suite]).resolve_sensor_def(f"{suite.slug}_failure_sensor")
        made = Told(sensor, place.instance)
        monkeypatch.setattr(failures, "open_notifier", lambda config, log: made)
        assert "Initiating" in made.tick().skip_message
        return made

    return make


def suite_of(place, name: str = "tiny", targets: Sequence[str] = ("pipeline",), **notify: Any) -> LoadedSuite:
    return place.suite(name, targets, notify={"kind": "log", **notify})


def all_calls_fail(place, kind: str, message: str) -> None:
    place.replies.update({question: CallError(kind, message) for question in QUESTIONS})


def test_a_dead_target_is_told_with_date_target_reason_and_link(place, told) -> None:
    suite = suite_of(place, "My Village", ("Base line", "v2"), page="http://dagster.example/")
    sensor = told(suite)
    all_calls_fail(place, "401", "no key")
    result = place.materialize(suite, targets=("v2",), date=DATES[1])
    assert sensor.ticks() == ["sent"]
    (message,) = sensor.messages
    assert (message.suite, message.run_date, message.targets) == ("My Village", DATES[1], ("v2",))
    assert message.headline() == "Evaluation of My Village for 2026-03-02 failed, target v2"
    assert message.link == f"http://dagster.example/runs/{result.run_id}"
    (fault,) = message.faults
    assert fault.where == "my_village/v2/generated_answers"
    assert fault.what.startswith("the first 4 calls all failed (401): no key")
    run = place.instance.get_run_by_id(result.run_id)
    assert run.tags["rag_eval.notified/my_village"] == "sent"
    assert run.tags["rag_eval.failure/my_village"] == message.digest


def test_a_blocking_check_is_told_with_what_it_found(place, told, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = suite_of(place)
    sensor = told(suite)
    whole = stages.match_table
    monkeypatch.setattr(stages, "match_table", lambda *arguments: whole(*arguments).slice(1))
    assert not place.materialize(suite).success
    sensor.ticks()
    (message,) = sensor.messages
    assert [(fault.where, fault.what) for fault in message.faults] == [
        ("check table_contract of tiny/pipeline/retrieval_matches", "1 example has no row")
    ]
    assert message.targets == ("pipeline",)


def test_the_same_failure_on_other_dates_is_told_once(place, told) -> None:
    suite = suite_of(place)
    sensor = told(suite)
    all_calls_fail(place, "401", "no key")
    for date in DATES:
        place.materialize(suite, date=date)
    assert sensor.ticks() == ["sent", "repeated", "repeated"], sensor.messages
    assert [message.run_date for message in sensor.messages] == [DATES[0]]
    all_calls_fail(place, "404", "gone")
    place.materialize(suite, date=DATES[1])
    sensor.ticks()
    assert len(sensor.messages) == 2, "another reason is another failure"


def test_after_a_while_the_same_failure_is_told_again(place, told, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = suite_of(place, repeat_after_minutes=1)
    sensor = told(suite)
    all_calls_fail(place, "401", "no key")
    place.materialize(suite, date=DATES[0])
    sensor.ticks()
    later = time.time() + 90

    class Later(failures.dt.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(later, tz)

    monkeypatch.setattr(failures.dt, "datetime", Later)
    place.materialize(suite, date=DATES[1])
    sensor.ticks()
    assert [message.run_date for message in sensor.messages] == [DATES[0], DATES[1]]


def test_many_different_failures_are_not_told_without_end(place, told) -> None:
    suite = suite_of(place, at_most_per_hour=2)
    sensor = told(suite)
    for date, reason in zip(DATES, ("401", "403", "404"), strict=True):
        all_calls_fail(place, reason, "no")
        place.materialize(suite, date=date)
    assert sensor.ticks() == ["sent", "sent", "too_many"]
    assert len(sensor.messages) == 2


def test_a_message_that_cannot_be_delivered_fails_the_tick_and_is_not_counted_as_sent(place, told) -> None:
    suite = suite_of(place)
    sensor = told(suite)
    sensor.fails = True
    all_calls_fail(place, "401", "no key")
    place.materialize(suite, date=DATES[0])
    context = dg.build_sensor_context(place.instance, sensor.cursor, sensor_name=sensor.sensor.name)
    (reaction,) = sensor.sensor.evaluate_tick(context).dagster_run_reactions
    assert "nobody answers" in str(reaction.error)
    sensor.fails = False
    sensor.cursor = context.cursor
    place.materialize(suite, date=DATES[1])
    sensor.ticks()
    assert [message.run_date for message in sensor.messages] == [DATES[1]]


def test_a_run_whose_process_is_gone_is_told_though_no_step_failed(place, told) -> None:
    suite = suite_of(place)
    sensor = told(suite)
    definitions = build_definitions([suite])
    run = place.instance.create_run_for_job(
        definitions.resolve_job_def("tiny_evaluation"), tags={"dagster/partition": DATES[0]}
    )
    place.instance.report_run_failed(run, "The process that executed this run is gone.")
    sensor.ticks()
    (message,) = sensor.messages
    assert [fault.what for fault in message.faults] == ["The process that executed this run is gone."]
    assert (message.run_date, message.targets) == (DATES[0], ())


def test_failed_runs_of_other_suites_are_not_its_business(place, told) -> None:
    suite, other = suite_of(place), suite_of(place, "tiny two")
    sensor = told(suite)
    all_calls_fail(place, "401", "no key")
    place.materialize(other)
    assert sensor.ticks() == ["-"]
    assert sensor.messages == []


def test_a_run_that_succeeds_is_not_told(place, told) -> None:
    suite = suite_of(place)
    sensor = told(suite)
    assert place.materialize(suite).success
    assert sensor.ticks() == ["-"]
    assert sensor.messages == []
