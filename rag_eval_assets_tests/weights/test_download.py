"""The last resort, with the real hub client against a server on this machine that answers like the hub."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rag_eval_assets.weights.registry import ModelPin

ROOT = Path(__file__).parents[2]
WEIGHTS = b"eight bytes of header and some numbers"
TINY = ModelPin(
    id="tiny",
    repo_id="somebody/tiny",
    revision="0123456789abcdef0123456789abcdef01234567",
    weights_sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    weights_bytes=len(WEIGHTS),
    bertscore_layer=1,
    max_seq_length=16,
    package=None,
)
FILES = {
    # All different: the client fetches equal contents once.
    "config.json": b"{}",
    "tokenizer_config.json": b"{ }",
    "tokenizer.json": b"{  }",
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"pickled",
    "onnx/model.onnx": b"another format",
    "README.md": b"needed by nobody",
}


class Hub(ThreadingHTTPServer):
    """Serves FILES as one repository and remembers which files were fetched."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = dict(FILES)
        self.fetched: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.split("?")[0]
        if path == f"/api/models/{TINY.repo_id}/tree/{TINY.revision}":
            listed = [
                {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for name, content in self.server.files.items()
            ]
            return self._send(json.dumps(listed).encode(), "application/json", body=body)
        name = path.removeprefix(f"/{TINY.repo_id}/resolve/{TINY.revision}/")
        if name not in self.server.files:
            return self.send_error(404)
        if body:
            self.server.fetched.append(name)
        return self._send(self.server.files[name], "application/octet-stream", body=body)

    def _send(self, content: bytes, kind: str, *, body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", TINY.revision)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def resolve_in_new_process(hub: Hub, cache: Path) -> str:
    """The source that a fresh process finds the model in, or the message of its error."""
    code = f"""
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.registry import REGISTRY, ModelPin
from rag_eval_assets.weights.resolve import resolve
REGISTRY["tiny"] = {TINY!r}
try:
    print(resolve("tiny").source)
except ConfigurationError as error:
    print(error)
"""
    dropped = {
        "HF_HUB_OFFLINE",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_TOKEN",
        "RAG_EVAL_MODELS_DIR",
        "HTTP_PROXY",
        "http_proxy",
    }
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(cache),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_only_the_named_files_of_the_pinned_revision_are_fetched_and_the_next_process_fetches_none(
    hub: Hub, tmp_path: Path
) -> None:
    assert resolve_in_new_process(hub, tmp_path) == "hub-download"
    assert sorted(hub.fetched) == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    hub.fetched.clear()
    assert resolve_in_new_process(hub, tmp_path) == "hub-cache"
    assert hub.fetched == []


def test_a_download_of_other_weights_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.files["model.safetensors"] = b"something else"
    message = resolve_in_new_process(hub, tmp_path)
    assert f"expected {TINY.weights_sha256}" in message


def test_a_repository_without_safetensors_is_refused(hub: Hub, tmp_path: Path) -> None:
    del hub.files["model.safetensors"]
    assert "the download lacks model.safetensors" in resolve_in_new_process(hub, tmp_path)
    assert "pytorch_model.bin" not in hub.fetched
