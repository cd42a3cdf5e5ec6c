"""Suites whose corpus lies in a folder beside them, and a web server on loopback that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.suite.load import LoadedSuite, read_suite


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """A suite in `tmp_path`; without further keys its corpus sensor watches the folder `docs`."""

    def read(**changes: Any) -> LoadedSuite:
        content = {
            "name": "tiny",
            "datasets": [{"sample": "builtin"}],
            "corpus": {"source": "sample"},
            "targets": {"pipeline": {"type": "embedded"}},
            "scorers": [{"type": "sentence_cosine"}],
            "corpus_sensor": {"watch": {"folder": "docs"}},
            **changes,
        }
        path = tmp_path / "tiny.yaml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return read_suite(path)

    return read


@dataclass
class Answering:
    """A web server: what it answers next, and what it was sent."""

    url: str
    body: bytes = b""
    statuses: list[int] = field(default_factory=list[int])
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@pytest.fixture
def server() -> Iterator[Answering]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["content-length"])))

        def _answer(self, sent: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            content = json.loads(sent) if sent else None
            answering.requests.append({"path": self.path, "headers": headers, "json": content})
            self.send_response(answering.statuses.pop(0) if answering.statuses else 200)
            self.send_header("content-length", str(len(answering.body)))
            self.end_headers()
            self.wfile.write(answering.body)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        answering = Answering(f"http://127.0.0.1:{listening.server_port}/version")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield answering
        listening.shutdown()
        thread.join()
