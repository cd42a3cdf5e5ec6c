"""`rag-eval ui` as a person starts and stops it."""

from __future__ import annotations

import signal
from pathlib import Path
from types import ModuleType

import pytest
import yaml


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_on_loopback_alone_and_stops_cleanly(
    how: signal.Signals, tmp_path: Path, servers: ModuleType
) -> None:
    port = servers.free_port()
    command = ["-m", "rag_eval_assets.cli", "ui", "--port", str(port)]
    with servers.start(command, port, tmp_path, RAG_EVAL_HOME=str(tmp_path / "home")) as running:
        nodes = running.query("{assetNodes{assetKey{path}}}")["assetNodes"]
        assert ["embedded", "pipeline", "eval_report"] in [node["assetKey"]["path"] for node in nodes]
        assert servers.listeners(running.process.pid) >= 1
        assert servers.listeners_off_loopback(running.process.pid) == []
        assert running.stop(how) in (0, -how)
        assert servers.listeners(running.process.pid) == 0
    settings = yaml.safe_load((tmp_path / "home" / "dagster" / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
    assert (tmp_path / "home" / "dagster" / "history").is_dir(), "the history outlives the server"
