"""Runs many commands for the price of one start: a process that has imported everything and loaded the models, and that
forks for each command.

Every command loads the same libraries (seconds each time) and the same models. Each forked process has the folder, the
variables and the streams of its caller, runs the entry point that the console script names, and shares nothing with the
others. Run as a script, this file is the server, one for all test processes; it ends with the last of them. What a test
says about starting (signals, kills, imports, threads) needs a process of its own instead.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]

CODE = "python"
"""The command that runs a snippet (`python -c`); the others are console scripts."""

COMMANDS = ("rag-eval", "dagster", "dg")

OURS = ("RAG_EVAL_", "DAGSTER_", "HF_", "AWS_")
"""Variables that tests set themselves: none of them comes in from outside."""

# Threads of the parent do not live on in a forked process, so nothing may start any.
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

AT_IMPORT = ("HF_", "HUGGINGFACE_", "PYTHON", "OMP_", "FORCE_COLOR", "PY_COLORS", "CLICOLOR", "GITHUB_ACTIONS", "TTY_")
"""Variables that are read when a library is imported: a command with others of them gets a process of its own."""

REQUEST, LEASE = b"R", b"L"

CLIENT = """#!{python} -SE
import json, os, socket, struct, sys
name = os.path.basename(sys.argv[0])
read_at_import = {{key: value for key, value in os.environ.items() if key.startswith({at_import!r})}}
if read_at_import != {read_at_import!r} or (name == {code!r} and sys.argv[1:2] != ["-c"]):
    start = sys.argv[1:] if name == {code!r} else [os.path.join({scripts!r}, name), *sys.argv[1:]]
    os.execv({python!r}, [{python!r}, *start])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = {{"name": name, "arguments": sys.argv[1:], "folder": os.getcwd(), "variables": dict(os.environ)}}
    body = json.dumps(request).encode()
    server.sendall({request!r})
    socket.send_fds(server, [struct.pack("!Q", len(body))], [0, 1, 2])
    server.sendall(body)
    answer = server.recv(4)
sys.exit(struct.unpack("!i", answer)[0] if len(answer) == 4 else 1)
"""


@dataclass(frozen=True)
class Warm:
    """The commands that the server runs, and the variables that they have to be run with.

    Attributes:
        folder: holds `rag-eval`, `dagster`, `dg` and `python`.
        environment: whole environment of a command, without anything of the tester's own settings, with an empty cache
            of the hub and the hub itself out of reach. Further variables may be added.
    """

    folder: Path
    environment: dict[str, str] = field(repr=False)

    def command(self, name: str, *arguments: str) -> list[str]:
        """The words that run a command."""
        return [str(self.folder / name), *arguments]


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The commands of the server that all test processes share; whoever needs it first starts it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "warm"
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*OURS, *AT_IMPORT))}
    environment = {
        **kept,
        "PATH": os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "hub"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    with FileLock(shared / "warm.lock"):
        lease = _lease(folder) or _start(folder, environment)
    with lease:
        yield Warm(folder, environment)


def _lease(folder: Path) -> socket.socket | None:
    """A connection that keeps the server alive; None where there is no server."""
    try:
        address = (folder / "address").read_text()
    except FileNotFoundError:
        return None
    lease = socket.socket(socket.AF_UNIX)
    try:
        lease.connect(address)
        lease.sendall(LEASE)
        if lease.recv(1) == LEASE:
            return lease
    except OSError:
        pass
    lease.close()
    return None


def _start(folder: Path, environment: dict[str, str]) -> socket.socket:
    folder.mkdir(exist_ok=True)
    address = str(Path(tempfile.mkdtemp(prefix="warm-")) / "socket")  # a socket's path has at most 107 bytes
    text = CLIENT.format(
        python=sys.executable,
        at_import=AT_IMPORT,
        read_at_import={name: value for name, value in environment.items() if name.startswith(AT_IMPORT)},
        code=CODE,
        scripts=str(Path(sys.executable).parent),
        address=address,
        request=REQUEST,
    )
    for name in (CODE, *COMMANDS):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    with (folder / "log").open("w") as log:
        # It returns once the server, a process of its own by then, listens.
        subprocess.run(
            [sys.executable, __file__, address], env={**environment, **SINGLE}, stdout=log, stderr=log, check=True
        )
    (folder / "address").write_text(address)
    lease = _lease(folder)
    assert lease is not None, (folder / "log").read_text()
    return lease


def warm_up() -> None:
    """Import what any command imports and, where its weights are, load both models and embed the sample once."""
    import asyncio

    import dagster._cli
    import dagster_dg_cli.cli
    import duckdb
    import pandas as pd

    import rag_eval_assets
    import rag_eval_assets.cli.app
    import rag_eval_assets.orchestration.execute
    from rag_eval_assets.dataset.corpus import load_corpus
    from rag_eval_assets.dataset.examples import load_examples
    from rag_eval_assets.errors import ConfigurationError
    from rag_eval_assets.progress import SILENT
    from rag_eval_assets.suite.load import load_suite
    from rag_eval_assets.targets.registry import open_target
    from rag_eval_assets.weights.resolve import resolve
    from rag_eval_assets_tests.servers.engines import keep_engines

    keep_engines()
    del dagster, dagster_dg_cli, duckdb, pd
    try:
        resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError:
        return
    rag_eval_assets.score(["warm"], ["up"], models={"bertscore": "all-MiniLM-L6-v2"}, cache=False)

    async def ask() -> None:
        suite = load_suite("embedded")
        questions = load_examples(suite).table.column("question").to_pylist()
        with tempfile.TemporaryDirectory() as cache:
            target = open_target(suite, "pipeline", load_corpus(suite), Path(cache))
            await target.prepare(SILENT)
            for question in questions:
                await target.answer(question, 0)

    asyncio.run(ask())


def listen(address: str) -> socket.socket:
    """Listen, and go on in a process of its own; the one that was started ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    sys.stdout.flush()
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    return listener


def serve(listener: socket.socket) -> None:
    """Answer one request after the other, several at a time, until nobody holds a lease."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the keepers below need nobody to wait for them
    leases: list[socket.socket] = []
    begun = False
    while leases or not begun:
        ready, _, _ = select.select([listener, *leases], [], [])
        for connection in ready:
            if connection is not listener:
                leases.remove(connection)
                connection.close()
                continue
            asked, _ = listener.accept()
            if asked.recv(1) == LEASE:
                asked.sendall(LEASE)
                leases.append(asked)
                begun = True
                continue
            with asked:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for inherited in (listener, *leases):
                        inherited.close()
                    keep(asked)


def keep(connection: socket.socket) -> None:
    """Let a further process run the command, and tell the caller how it ended. Never returns."""
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    body = b""
    while len(body) < struct.unpack("!Q", size)[0]:
        body += connection.recv(1 << 20)
    command = os.fork()
    if command == 0:
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        connection.close()
        run(json.loads(body))
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(command)
    if ended not in select.select([connection, ended], [], [])[0]:  # the caller is gone, as after its time limit
        os.kill(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def run(request: dict[str, Any]) -> None:
    """Run a command with the folder and variables of its caller, and exit as it does.

    The process ends without taking the interpreter apart: that alone costs two seconds with all that is loaded.
    """
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    code: object = 0
    try:
        _call(request["name"], request["arguments"])
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _call(name: str, arguments: list[str]) -> None:
    if name == CODE:
        sys.argv = ["-c"]
        exec(compile(arguments[1], "<snippet>", "exec"), {"__name__": "__main__"})
    else:
        (script,) = entry_points(group="console_scripts", name=name)
        sys.argv = [name, *arguments]
        sys.exit(script.load()())


if __name__ == "__main__":
    warm_up()
    if len(sys.argv) == 1:  # that was all: everything is compiled now
        sys.exit()
    gc.freeze()  # a collection in a forked process would touch, and so copy, all of the memory
    serve(listen(sys.argv[1]))
    Path(sys.argv[1]).unlink()
    Path(sys.argv[1]).parent.rmdir()
