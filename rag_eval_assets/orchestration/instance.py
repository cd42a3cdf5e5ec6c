"""The Dagster instance that command line, web server and daemon share, so that they write one history."""

from __future__ import annotations

import os
import platform
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import dagster as dg

from rag_eval_assets.home import Home
from rag_eval_assets.storage.atomic import process_is_gone, replace_file

RUN_TAG = "rag_eval/run"
PID_TAG = "rag_eval/pid"
HOST_TAG = "rag_eval/host"
BOOT_TAG = "rag_eval/boot"
STARTED_TAG = "rag_eval/process_started"

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
def shared_instance(home: Home) -> Generator[dg.DagsterInstance]:
    """The instance of `dagster_home`, with the runs of killed processes ended first."""
    with _variables(DAGSTER_HOME=str(dagster_home(home))), dg.DagsterInstance.get() as instance:
        fail_dead_runs(instance)
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
        BOOT_TAG: _boot_id(),
        STARTED_TAG: _process_start(pid),
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
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED, tags={HOST_TAG: platform.node()})):
        if run.tags.get(RUN_TAG) == run.run_id and not _is_alive(run.tags):
            instance.report_run_failed(run, "The process that executed this run is gone.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            ended.append(run.run_id)
    return ended


def _is_alive(tags: Mapping[str, str]) -> bool:
    same_boot = tags.get(BOOT_TAG) == _boot_id()
    return same_boot and _process_start(int(tags[PID_TAG])) == tags.get(STARTED_TAG)


def _boot_id() -> str:
    """Id of the machine's current boot; empty where the system tells none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _process_start(pid: int) -> str:
    """When a process was started, in the system's own unit; `gone` where there is none. Pids are used again."""
    try:
        # The second field is the command in parentheses and may hold spaces; the start time is field 22 (proc(5)).
        after_command = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1]
        return after_command.split()[19]
    except FileNotFoundError:
        return _without_proc(pid)
    except (OSError, IndexError):
        return "gone"


def _without_proc(pid: int) -> str:
    if Path("/proc/self").exists():
        return "gone"
    return "gone" if process_is_gone(pid) else "unknown"
