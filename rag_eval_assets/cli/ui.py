"""`rag-eval ui`: Dagster's web server and daemon on this machine, over the same history as `rag-eval run`."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Annotated

import typer

from rag_eval_assets.cli.console import stderr
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home
from rag_eval_assets.suite.load import load_suites

LOCATION = ("-m", "rag_eval_assets.definitions")
"""The code location that is opened, as options of `dagster dev`."""

SUPERSEDED = "ignore:Function `dev_command` is superseded"
"""Filter of Python's warnings for what Dagster says of its command, which a person who runs ours cannot change."""


def ui(
    suites: Annotated[
        list[str] | None, typer.Argument(help="Suites to load; by default those of RAG_EVAL_SUITES.")
    ] = None,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on 127.0.0.1.")] = 3000,
) -> None:
    """Start web server and daemon on 127.0.0.1; Ctrl-C stops both."""
    require_free_port(port)
    if suites:
        os.environ["RAG_EVAL_SUITES"] = os.pathsep.join(suites)
    names = ", ".join(suite.name for suite in load_suites())  # a broken suite is told here, not in a log
    from rag_eval_assets.orchestration.instance import dagster_home, shared_instance

    home = Home.from_environment()
    # For the process that this one becomes.
    os.environ.update(RAG_EVAL_HOME=str(home.root), DAGSTER_HOME=str(dagster_home(home)))
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), SUPERSEDED)))
    with shared_instance(home, tell=lambda text: stderr().print(text, markup=False, soft_wrap=True)):
        told = f"suites: {names}\nhistory: {home.root}\nstarting; in half a minute open http://127.0.0.1:{port}"
        stderr().print(f"{told} (Ctrl-C ends it)", markup=False, soft_wrap=True)
    # A shell's background job ignores SIGINT, and Dagster would pass that on to its children, which nothing could
    # then stop; this process becomes Dagster, with the default handlers.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    command = [sys.executable, "-m", "dagster", "dev", *LOCATION]
    os.execv(sys.executable, [*command, "--host", "127.0.0.1", "--port", str(port)])


def require_free_port(port: int) -> None:
    """Raise ConfigurationError where something listens on `port`: Dagster would go on without its web page."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigurationError(
                f"port {port} of 127.0.0.1 is in use ({error.strerror})",
                fix="Stop what listens there (another `rag-eval ui`?), or choose another port with --port",
            ) from error
