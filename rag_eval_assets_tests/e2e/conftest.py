"""A live web server and daemon on loopback, and the GraphQL calls that a person's clicks make."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

START_SECONDS = 90
BACKFILL_SECONDS = 480  # the daemon looks for backfills every 30 s, runs wait for the pool, and two cores run all


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
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = json.load(answer)
        assert "errors" not in content, content["errors"]
        return content["data"]

    def launch_backfill(self, partitions: list[str]) -> str:
        """Launch a backfill of every asset over `partitions`; returns its id."""
        keys = [node["assetKey"] for node in self.query("{assetNodes{assetKey{path}}}")["assetNodes"]]
        launched = self.query(
            "mutation($p: LaunchBackfillParams!){launchPartitionBackfill(backfillParams: $p)"
            "{__typename ... on LaunchBackfillSuccess{backfillId} ... on PythonError{message}}}",
            p={"assetSelection": keys, "partitionNames": partitions, "title": "test"},
        )["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return launched["backfillId"]

    def wait_for_backfill(self, backfill: str) -> str:
        """The status of a backfill once it has ended."""
        until = time.monotonic() + BACKFILL_SECONDS
        while time.monotonic() < until:
            found = self.query(
                "query($b: String!){partitionBackfillOrError(backfillId: $b){... on PartitionBackfill{status}}}",
                b=backfill,
            )
            status = found["partitionBackfillOrError"]["status"]
            if status.startswith("COMPLETED") or status == "FAILED":
                return status
            time.sleep(1)
        raise AssertionError(f"the backfill did not end; {self.log.read_text()[-2000:]}")

    def stop(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code; a process that does not stop in time fails the test."""
        self.process.send_signal(how)
        return self.process.wait(timeout=20)


@contextmanager
def start(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[Live]:
    """Start `command`, wait until the web server answers, and leave no process behind."""
    log = folder / "server.log"
    environ = {**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1", **environment}
    with log.open("wb") as output:
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
