"""A live web server and daemon on loopback, and the GraphQL calls that a person's clicks make."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

START_SECONDS = 300
QUERY_SECONDS = 120
WAIT_SECONDS = 600
"""Only a test that fails waits so long: a machine that has much else to do must not fail one."""


@dataclass
class Live:
    """A running instance."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def query(self, text: str, **variables: Any) -> dict[str, Any]:
        """The `data` of a GraphQL answer; errors fail the test."""
        body = json.dumps({"query": text, "variables": variables}).encode()
        url = f"http://127.0.0.1:{self.port}/graphql"
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=QUERY_SECONDS) as answer:
                content = json.load(answer)
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{text}: {refused.read()[:2000]!r}") from refused
        assert "errors" not in content, content["errors"]
        return content["data"]

    def asset_keys(self, suite: str, *without: str) -> list[list[str]]:
        """Keys of a suite's assets, except those of the names `without`."""
        nodes = self.query("{assetNodes{assetKey{path}}}")["assetNodes"]
        paths = [node["assetKey"]["path"] for node in nodes]
        return [path for path in paths if path[0] == suite and path[-1] not in without]

    def launch_backfill(self, suite: str, partitions: list[str], config: str | None = None) -> str:
        """Launch a backfill of every asset of a suite over `partitions`; returns its id."""
        keys = [{"path": path} for path in self.asset_keys(suite)]
        params = {"assetSelection": keys, "partitionNames": partitions, "title": "test"}
        return self._launch({**params, **({} if config is None else {"runConfigData": config})})

    def launch_job_backfill(self, job: str, partitions: list[str]) -> str:
        """Launch a backfill of a job over `partitions`; returns its id."""
        selector = {"partitionSetName": f"{job}_partition_set", "repositorySelector": self.repository()}
        return self._launch({"selector": selector, "partitionNames": partitions})

    def _launch(self, params: dict[str, Any]) -> str:
        launched = self.query(
            "mutation($p: LaunchBackfillParams!){launchPartitionBackfill(backfillParams: $p)"
            "{__typename ... on LaunchBackfillSuccess{backfillId} ... on PythonError{message}}}",
            p=params,
        )["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return launched["backfillId"]

    def repeat_failed(self, backfill: str) -> str:
        """What *Re-execute from failure* on a backfill's page does; returns the new backfill's id."""
        launched = self.query(
            "mutation($p: ReexecutionParams){reexecutePartitionBackfill(reexecutionParams: $p)"
            "{__typename ... on LaunchBackfillSuccess{backfillId} ... on PythonError{message}}}",
            p={"parentRunId": backfill, "strategy": "FROM_FAILURE"},
        )["reexecutePartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return launched["backfillId"]

    def launch_run(self, paths: list[list[str]], partition: str, config: str = "{}") -> str:
        """What *Materialize* does for one date of the assets; returns the run's id."""
        selector = {
            "repositoryLocationName": self.repository()["repositoryLocationName"],
            "repositoryName": "__repository__",
            "pipelineName": "__ASSET_JOB",
            "assetSelection": [{"path": path} for path in paths],
            "assetCheckSelection": None,
        }
        tags = [{"key": "dagster/partition", "value": partition}]
        launched = self.query(
            "mutation($p: ExecutionParams!){launchPipelineExecution(executionParams: $p)"
            "{__typename ... on LaunchRunSuccess{run{runId}} ... on PythonError{message}"
            " ... on RunConfigValidationInvalid{errors{message}}}}",
            p={
                "selector": selector,
                "mode": "default",
                "runConfigData": config,
                "executionMetadata": {"tags": tags},
            },
        )["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return launched["run"]["runId"]

    def repository(self) -> dict[str, str]:
        """The only repository."""
        nodes = self.query("{repositoriesOrError{... on RepositoryConnection{nodes{location{name}}}}}")
        name = nodes["repositoriesOrError"]["nodes"][0]["location"]["name"]
        return {"repositoryLocationName": name, "repositoryName": "__repository__"}

    def runs(self, **tags: str) -> list[dict[str, Any]]:
        """Runs with these tags (`/` written `__`), newest first: runId, status, tags."""
        wanted = [{"key": key.replace("__", "/"), "value": value} for key, value in tags.items()]
        found = self.query(
            "query($f: RunsFilter){runsOrError(filter: $f){... on Runs{results{runId status tags{key value}}}}}",
            f={"tags": wanted},
        )["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def faults(self, **tags: str) -> dict[str, list[str]]:
        """Why runs with these tags failed: run date to messages; what a failing test should say."""
        text = (
            "query($r: ID!){logsForRun(runId: $r){... on EventConnection{events{... on ExecutionStepFailureEvent"
            "{stepKey error{message cause{message}}} ... on RunFailureEvent{message error{message}}}}}}"
        )
        failed = [run for run in self.runs(**tags) if run["status"] == "FAILURE"]
        found: dict[str, list[str]] = {}
        for run in failed:
            events = self.query(text, r=run["runId"])["logsForRun"]["events"]
            found.setdefault(run["tags"].get("dagster/partition", ""), []).extend(str(e)[:600] for e in events if e)
        return found

    def status(self, run_id: str) -> str:
        """The status of a run."""
        text = "query($r: ID!){runOrError(runId: $r){... on Run{status}}}"
        return self.query(text, r=run_id)["runOrError"]["status"]

    def wait_for_run(self, run_id: str) -> str:
        """The status of a run once it has ended."""

        def ended() -> str | None:
            status = self.status(run_id)
            return status if status in ("SUCCESS", "FAILURE", "CANCELED") else None

        return self.wait(ended)

    def wait(self, look: Callable[[], Any]) -> Any:
        """What `look` returns once that is neither None nor false."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            found = look()
            if found:
                return found
            time.sleep(0.3)
        raise AssertionError(f"it did not happen; {self.log.read_text()[-3000:]}")

    def ticks(self, sensor: str) -> list[dict[str, Any]]:
        """The ticks of a sensor, newest first: status, skipReason, runIds, error."""
        found = self.query(
            "query($s: SensorSelector!){sensorOrError(sensorSelector: $s){... on Sensor{sensorState{ticks(limit: 200)"
            "{status skipReason runIds error{message}}}}}}",
            s={**self.repository(), "sensorName": sensor},
        )
        return found["sensorOrError"]["sensorState"]["ticks"]

    def switch(self, kind: str, name: str, *, on: bool) -> None:
        """Start or stop a `sensor` or `schedule` as the switch on its page does."""
        if on:
            what = kind.capitalize()
            self.query(
                f"mutation($s: {what}Selector!){{start{what}({kind}Selector: $s){{__typename}}}}",
                s={**self.repository(), f"{kind}Name": name},
            )
            return
        what = "stopSensor(id: $i)" if kind == "sensor" else "stopRunningSchedule(id: $i)"
        text = (
            f"query($s: {kind.capitalize()}Selector!){{{kind}OrError({kind}Selector: $s)"
            f"{{... on {kind.capitalize()}{{id}}}}}}"
        )
        found = self.query(text, s={**self.repository(), f"{kind}Name": name})[f"{kind}OrError"]["id"]
        self.query(f"mutation($i: String!){{{what}{{__typename}}}}", i=found)

    def set_pool(self, pool: str, limit: int) -> None:
        """Set the limit of a pool, as on the page of the deployment."""
        text = "mutation($p: String!, $l: Int!){setConcurrencyLimit(concurrencyKey: $p, limit: $l)}"
        assert self.query(text, p=pool, l=limit)["setConcurrencyLimit"]

    def cancel_queued(self, runs: list[dict[str, Any]]) -> None:
        """Cancel those of the runs that have not begun."""
        queued = [run["runId"] for run in runs if run["status"] == "QUEUED"]
        if queued:
            self.query("mutation($r: [String!]!){terminateRuns(runIds: $r){__typename}}", r=queued)

    def reload(self) -> None:
        """Load the code location again, as the button on its page does."""
        name = self.repository()["repositoryLocationName"]
        text = "mutation($n: String!){reloadRepositoryLocation(repositoryLocationName: $n){__typename}}"
        made = self.query(text, n=name)["reloadRepositoryLocation"]["__typename"]
        assert made == "WorkspaceLocationEntry", made

    def stale(self, suite: str, partitions: list[str]) -> dict[str, list[str]]:
        """Asset name to its staleness on each of `partitions`."""
        nodes = self.query(
            "query($p: [String!]){assetNodes{assetKey{path} staleStatusByPartition(partitions: $p)}}", p=partitions
        )["assetNodes"]
        return {
            node["assetKey"]["path"][-1]: node["staleStatusByPartition"]
            for node in nodes
            if node["assetKey"]["path"][0] == suite
        }

    def wait_for_backfill(self, backfill: str) -> str:
        """The status of a backfill once it has ended."""
        text = "query($b: String!){partitionBackfillOrError(backfillId: $b){... on PartitionBackfill{status}}}"

        def ended() -> str | None:
            status = self.query(text, b=backfill)["partitionBackfillOrError"]["status"]
            return status if status.startswith("COMPLETED") or status == "FAILED" else None

        return self.wait(ended)

    def stop(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code; a process that does not stop in time fails the test."""
        self.process.send_signal(how)
        return self.process.wait(timeout=60)


@contextmanager
def start(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[Live]:
    """Start `command`, wait until the web server answers, and leave no process behind."""
    log = folder / "server.log"
    environ = {**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1", **environment}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environ, stdout=output, stderr=output, start_new_session=True
        )
    running = Live(port, process, log)
    try:
        _wait_until_up(running)
        yield running
    finally:
        if process.poll() is None:
            # Dagster loses an interrupt that comes at a bad moment of its daemon; that is not what is tested here.
            with suppress(subprocess.TimeoutExpired):
                running.stop(signal.SIGINT)
        # Whatever is left of its process group: a test must not leave servers on the machine.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)


def kill_all(running: Live) -> None:
    """SIGKILL every process of a running instance at once, as a power cut would."""
    while alive := _alive_in_session(running.process.pid):  # again for those that were being started meanwhile
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    running.process.wait(timeout=10)


def _alive_in_session(session: int) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _is_alive_in(session, pid)]


def _is_alive_in(session: int, pid: int) -> bool:
    try:
        # The second field, the command, may hold spaces; then come state and, as the fourth from there, the session.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and int(fields[3]) == session


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listeners_off_loopback(group: int) -> list[str]:
    """Listening TCP sockets of a process group that other machines could reach, read from /proc."""
    inodes = {inode for pid in _members(group) for inode in _socket_inodes(pid)}
    found: list[str] = []
    for table, loopback in (("tcp", ("0100007F",)), ("tcp6", ("00000000000000000000000001000000",))):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            address, state, inode = fields[1].split(":")[0], fields[3], fields[9]
            if state == "0A" and inode in inodes and address not in loopback:
                found.append(line)
    return found


def listeners(group: int) -> int:
    """How many listening TCP sockets a process group has."""
    inodes = {inode for pid in _members(group) for inode in _socket_inodes(pid)}
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[3] == "0A" and line.split()[9] in inodes for line in lines)


def _members(group: int) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _group_of(pid) == group]


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _socket_inodes(pid: int) -> set[str]:
    try:
        links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return set()
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def _wait_until_up(running: Live) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if running.process.poll() is not None:
            raise AssertionError(f"the server ended: {running.log.read_text()[-3000:]}")
        try:
            running.query("{repositoriesOrError{... on RepositoryConnection{nodes{name}}}}")
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"the server did not come up: {running.log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """This module: `start`, `free_port`, `listeners`, `listeners_off_loopback`."""
    return sys.modules[__name__]
