"""The Dagster instance that command line, web server and daemon share, so that they write one history."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import dagster as dg

from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.processes import boot_id, process_start, started_at
from rag_eval_assets.storage.atomic import replace_file

RUN_TAG = "rag_eval/run"
PID_TAG = "rag_eval/pid"
HOST_TAG = "rag_eval/host"
BOOT_TAG = "rag_eval/boot"
STARTED_TAG = "rag_eval/process_started"

_PROCESS_STARTED = re.compile(r"Started process for run \(pid: (\d+)\)")
"""What Dagster's default launcher writes into the log of a run first."""

_CLOCK_SLACK_SECONDS = 2.0
"""A process's start is known to a hundredth of a second after the boot, whose time is known to a second."""

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def dagster_home(home: Home) -> Path:
    """`DAGSTER_HOME` where it is set, else the folder under our own home; made, with the instance template, if new."""
    folder = Path(os.environ.get("DAGSTER_HOME") or home.dagster).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "dagster.yaml"
    if not settings.exists():
        template = resources.files("rag_eval_assets.orchestration") / "dagster.yaml"
        content = template.read_bytes()
        replace_file(settings, lambda temporary: _write(temporary, content))
    return folder


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@contextmanager
def shared_instance(home: Home, *, tell: Callable[[str], None] = lambda _: None) -> Generator[dg.DagsterInstance]:
    """The instance of `dagster_home`, with the runs of killed processes ended first; `tell` hears of each."""
    with _variables(DAGSTER_HOME=str(dagster_home(home))), dg.DagsterInstance.get() as instance:
        for run_id in fail_dead_runs(instance):
            tell(f"run {run_id} is marked failed: the process that executed it is gone")
        yield instance


@contextmanager
def _variables(**values: str) -> Generator[None]:
    """Environment variables for the time of a `with` block: the next block may be about another home."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def process_tags(run_id: str, pid: int) -> dict[str, str]:
    """Run tags that say which process executes the run, so that its death can be noticed later."""
    return {
        # Dagster copies a run's tags to its re-executions, which other processes execute: these tags are about one run.
        RUN_TAG: run_id,
        PID_TAG: str(pid),
        HOST_TAG: platform.node(),
        BOOT_TAG: boot_id(),
        STARTED_TAG: process_start(pid),
    }


def tag_run(instance: dg.DagsterInstance, run_id: str, pid: int) -> None:
    """Give a run that somebody else started, such as the web server, the tags of the process that executes it."""
    run = instance.get_run_by_id(run_id)
    if run is not None and run.tags.get(RUN_TAG) != run_id:
        instance.add_run_tags(run_id, process_tags(run_id, pid))


def fail_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """End the runs of this machine whose process is gone, and free their pool slots; returns their ids.

    Nobody else would notice that the process of a local run was killed: the run would stay "started" and hold its slot
    of a pool for ever, and the next run would wait for that slot. Runs of other machines are left alone, since nothing
    is known of them here: an instance may be shared through a database server.
    """
    ended: list[str] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        if _is_known_to_be_dead(instance, run):
            instance.report_run_failed(run, "The process that executed this run is gone.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            ended.append(run.run_id)
    return ended


def _is_known_to_be_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    if run.tags.get(RUN_TAG) == run.run_id:
        return run.tags.get(HOST_TAG) == platform.node() and not _is_alive(run.tags)
    # Its first step has not begun, so it has no tags of its own yet; the log names the process that the web server or
    # the daemon started, though not the machine. A database in a file is this machine's alone.
    return _is_local(instance) and _was_started_and_is_gone(instance, run)


def _is_local(instance: dg.DagsterInstance) -> bool:
    return type(instance.run_storage).__name__ == "SqliteRunStorage"


def _was_started_and_is_gone(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the process that the log of a run names is there no more, or its id is another one's by now."""
    for entry in instance.all_logs(run.run_id, dg.DagsterEventType.ENGINE_EVENT):
        named = _PROCESS_STARTED.match(entry.message)
        if named is not None:
            since = started_at(int(named[1]))
            return since is None or since > entry.timestamp + _CLOCK_SLACK_SECONDS
    return False


def _is_alive(tags: Mapping[str, str]) -> bool:
    same_boot = tags.get(BOOT_TAG) == boot_id()
    return same_boot and process_start(int(tags[PID_TAG])) == tags.get(STARTED_TAG)
