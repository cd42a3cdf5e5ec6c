"""Runs many commands for the price of one start: a process that has imported everything and loaded the models, and that
forks for each command.

Every page's commands load the same libraries (10 s each time) and the same models. Each forked process has the folder,
the variables and the streams of its caller, runs the entry point that the console script names, and shares nothing
with the others. Run as a script, this file is the server; `install` makes the commands that call it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

CODE = "python"
"""The command that runs a snippet (`python -c`); the others are console scripts."""

COMMANDS = ("rag-eval", "dagster", "dg")

# Threads of the parent do not live on in a forked process, so nothing may start any.
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

CLIENT = """#!{python} -SE
import json, os, socket, struct, sys
name = os.path.basename(sys.argv[0])
hub = {{key: value for key, value in os.environ.items() if key.startswith("HF_")}}
# The variables of the hub's client are read when it is imported: such a command needs a process of its own.
if hub != {hub!r} or (name == {code!r} and sys.argv[1:2] != ["-c"]):
    start = sys.argv[1:] if name == {code!r} else [os.path.join({scripts!r}, name), *sys.argv[1:]]
    os.execv({python!r}, [{python!r}, *start])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = {{"name": name, "arguments": sys.argv[1:], "folder": os.getcwd(), "variables": dict(os.environ)}}
    body = json.dumps(request).encode()
    socket.send_fds(server, [struct.pack("!Q", len(body))], [0, 1, 2])
    server.sendall(body)
    answer = server.recv(4)
sys.exit(struct.unpack("!i", answer)[0] if len(answer) == 4 else 1)
"""


@contextmanager
def install(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Put the commands into `folder`, backed by a server that is started here and ended at the end of the block.

    Args:
        folder: where the commands are written; the caller puts it on the path.
        environment: variables of the server; those of the hub (`HF_...`) must be those of the commands.
    """
    with tempfile.TemporaryDirectory() as short:  # a socket's path has at most 107 bytes
        address = str(Path(short) / "warm")
        hub = {key: value for key, value in environment.items() if key.startswith("HF_")}
        scripts = str(Path(sys.executable).parent)
        for name in (CODE, *COMMANDS):
            script = folder / name
            script.write_text(
                CLIENT.format(python=sys.executable, hub=hub, code=CODE, scripts=scripts, address=address)
            )
            script.chmod(0o755)
        command = [sys.executable, __file__, address]
        with subprocess.Popen(command, env={**environment, **SINGLE}, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == "ready\n", "the warm process did not start"
                yield
            finally:
                server.terminate()


def warm_up() -> None:
    """Import what any command imports, load both models, and embed the sentences of the sample once."""
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
    from rag_eval_assets.progress import SILENT
    from rag_eval_assets.suite.load import load_suite
    from rag_eval_assets.targets.registry import open_target

    del dagster, dagster_dg_cli, duckdb, pd
    rag_eval_assets.score(["warm"], ["up"], models={"bertscore": "all-MiniLM-L6-v2"})

    async def ask() -> None:
        suite = load_suite("embedded")
        questions = load_examples(suite).table.column("question").to_pylist()
        with tempfile.TemporaryDirectory() as cache:
            target = open_target(suite, "pipeline", load_corpus(suite), Path(cache))
            await target.prepare(SILENT)
            for question in questions:
                await target.answer(question, 0)

    asyncio.run(ask())


def serve(address: str) -> None:
    """Answer one request after the other, several at a time; never returns in the server itself."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the keepers below need nobody to wait for them
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    keep(connection)
                    return


def keep(connection: socket.socket) -> None:
    """Let a further process run the command, and tell the caller how it ended. Returns in that process never."""
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
    gc.freeze()  # a collection in a forked process would touch, and so copy, all of the memory
    serve(sys.argv[1])
