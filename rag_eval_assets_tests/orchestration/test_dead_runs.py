"""Runs whose process was killed: they end as failed and give their pool slot back; all other runs are left alone.

No `from __future__ import annotations` here: Dagster reads the annotations of ops at run time.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.orchestration.instance import (
    BOOT_TAG,
    HOST_TAG,
    PID_TAG,
    RUN_TAG,
    STARTED_TAG,
    dagster_home,
    fail_dead_runs,
    process_tags,
    shared_instance,
)

ROOT = Path(__file__).parents[2]
START_SECONDS = 90

STUCK = """
import importlib.util, sys, time
from pathlib import Path

_, conftest, folder, suite, started_by = sys.argv
spec = importlib.util.spec_from_file_location("village", conftest)
village = sys.modules["village"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(village)


def hang(self, pairs, advance):
    Path(folder, "scoring").touch()
    time.sleep(600)


village.WordOverlap.score_pairs = hang
with village.open_place(Path(folder)) as place:
    suite = village.read_suite(Path(suite))
    if started_by == "command line":
        place.execute(suite)
    else:
        with village.dg.DagsterInstance.get() as instance:
            place.materialize(suite, instance=instance)
"""


def slots_in_use(instance: dg.DagsterInstance) -> int:
    return instance.event_log_storage.get_concurrency_info("gpu").active_slot_count


@pytest.mark.parametrize(
    ("started_by", "granularity"),
    [
        ("command line", "run"),  # as shipped: a run waits in the queue, and none inside its step
        ("web server", "op"),  # as a step executor wants it: a step holds the slot while it runs
    ],
)
def test_a_run_killed_while_it_scores_ends_as_failed_and_the_next_run_completes(
    started_by: str, granularity: str, place, village: ModuleType
) -> None:
    suite = place.suite()
    settings = dagster_home(place.home) / "dagster.yaml"
    shipped = settings.read_text(encoding="utf-8")
    assert "    granularity: run\n" in shipped
    settings.write_text(
        shipped.replace("    granularity: run\n", f"    granularity: {granularity}\n"), encoding="utf-8"
    )
    held = 1 if granularity == "op" else 0
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, str(village.__file__), str(place.folder), str(suite.path), started_by],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + START_SECONDS
        while not (place.folder / "scoring").exists():
            assert process.poll() is None, "the run ended before it scored"
            assert time.monotonic() < until
            time.sleep(0.1)
        with shared_instance(place.home) as instance:
            (run,) = instance.get_runs()
            assert run.status == dg.DagsterRunStatus.STARTED, "another process looked, and left the living run alone"
            assert slots_in_use(instance) == held
        if granularity == "run":
            beside = place.execute(suite, village.LATER)
            assert beside.failures == [], "a command line does not wait for another run's scoring"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with shared_instance(place.home) as instance:
        run = instance.get_runs()[-1]
        assert run.status == dg.DagsterRunStatus.FAILURE
        assert "process that executed this run is gone" in instance.all_logs(run.run_id)[-1].message
        assert slots_in_use(instance) == 0
    done = place.execute(suite)
    assert done.failures == []
    assert done.reports[0].report.counts.answered == 4


ANOTHER_RUN = "5a3c1d52-0d6f-4d4f-9a53-6a1f6d1f0c11"


def ended_child() -> str:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    return str(child.pid)


@pytest.mark.parametrize(
    ("changed", "ends"),
    [
        pytest.param({}, False, id="alive"),
        pytest.param({BOOT_TAG: "another"}, True, id="before the last boot"),
        pytest.param({PID_TAG: ended_child()}, True, id="process gone"),
        pytest.param({STARTED_TAG: "1"}, True, id="pid used again"),
        pytest.param({HOST_TAG: "elsewhere", BOOT_TAG: "another"}, False, id="on another machine"),
        pytest.param({RUN_TAG: ANOTHER_RUN, BOOT_TAG: "another"}, False, id="tags copied to a re-execution"),
    ],
)
def test_a_run_ends_only_where_its_own_process_is_known_to_be_gone(changed: dict[str, str], ends: bool) -> None:
    seen: list[tuple[list[str], dg.DagsterRunStatus]] = []

    @dg.op
    def look(context: dg.OpExecutionContext) -> None:
        tags = {**process_tags(context.run.run_id, os.getpid()), **changed}
        context.instance.add_run_tags(context.run.run_id, tags)
        ended = fail_dead_runs(context.instance)
        run = context.instance.get_run_by_id(context.run.run_id)
        assert run is not None
        seen.append((ended, run.status))

    @dg.job(logger_defs={})
    def looking() -> None:
        look()

    with dg.DagsterInstance.ephemeral() as instance:
        result = looking.execute_in_process(instance=instance, raise_on_error=False)
    ((ended, status),) = seen
    assert ended == ([result.run_id] if ends else [])
    assert status == (dg.DagsterRunStatus.FAILURE if ends else dg.DagsterRunStatus.STARTED)


def test_a_run_without_process_tags_is_left_alone() -> None:
    seen: list[list[str]] = []

    @dg.op
    def look(context: dg.OpExecutionContext) -> None:
        seen.append(fail_dead_runs(context.instance))

    @dg.job
    def looking() -> None:
        look()

    with dg.DagsterInstance.ephemeral() as instance:
        assert looking.execute_in_process(instance=instance).success
    assert seen == [[]]


@pytest.mark.parametrize(
    ("pid", "written", "ends"),
    [
        pytest.param(os.getpid(), time.time(), False, id="alive"),
        pytest.param(int(ended_child()), time.time(), True, id="process gone"),
        pytest.param(os.getpid(), 86_400.0, True, id="pid used again, perhaps after a boot"),
        pytest.param(None, 0.0, False, id="not known"),
    ],
)
def test_a_run_that_was_killed_before_its_first_step_is_known_by_its_log(
    pid: int | None, written: float, ends: bool, place
) -> None:
    """Its first step would have tagged it; the process that the launcher started stands in the log."""
    job = build_definitions([place.suite()]).resolve_job_def("tiny_evaluation")
    with shared_instance(place.home) as instance:
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
        if pid is not None:
            message = f"Started process for run (pid: {pid})."
            event = dg.DagsterEvent(
                "ENGINE_EVENT", run.job_name, event_specific_data=EngineEventData(), message=message
            )
            instance.handle_new_event(
                dg.EventLogEntry(None, 20, message, run.run_id, written, job_name=run.job_name, dagster_event=event)
            )
    told: list[str] = []
    with shared_instance(place.home, tell=told.append) as instance:
        status = instance.get_runs()[0].status
    assert status == (dg.DagsterRunStatus.FAILURE if ends else dg.DagsterRunStatus.STARTED)
    assert len(told) == ends


def test_runs_of_the_web_server_are_tagged_with_their_process(place) -> None:
    result = place.materialize(place.suite(), ["corpus"])
    run = place.instance.get_run_by_id(result.run_id)
    assert process_tags(result.run_id, os.getpid()).items() <= run.tags.items()
    assert run.tags["rag_eval/suite"] == "tiny"


class TestTheInstance:
    def test_it_is_made_from_the_template_and_a_changed_file_is_kept(self, place) -> None:
        folder = dagster_home(place.home)
        settings = folder / "dagster.yaml"
        assert "default_limit: 1" in settings.read_text()
        assert [path.name for path in folder.iterdir()] == ["dagster.yaml"]
        settings.write_text("telemetry: {enabled: false}\n")
        dagster_home(place.home)
        assert settings.read_text() == "telemetry: {enabled: false}\n"

    def test_without_dagster_home_it_lies_in_the_projects_own_home(self, place, monkeypatch) -> None:
        monkeypatch.delenv("DAGSTER_HOME")
        assert dagster_home(place.home) == place.home.dagster.resolve()
