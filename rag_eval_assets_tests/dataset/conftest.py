"""Suites over files of a test's own folder, and a hub on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.suite.load import LoadedSuite, read_suite

ROOT = Path(__file__).parents[2]
REPOSITORY = "somebody/questions"
PAGE = 2
"""Files that the hub lists on one page."""


@pytest.fixture
def suite_over(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """A suite whose data sets are the given ones (file names, or whole mappings), with a corpus of `corpus`."""

    def make(*data_sets: str | dict[str, Any], corpus: dict[str, Any] | None = None) -> LoadedSuite:
        content = {
            "datasets": [{"file": given} if isinstance(given, str) else given for given in data_sets],
            "corpus": corpus or {"source": "sample"},
            "targets": {"pipeline": {"type": "embedded"}},
            "scorers": [{"type": "sentence_cosine"}],
        }
        path = tmp_path / "tested.yaml"
        path.write_text(yaml.safe_dump(content), "utf-8")
        return read_suite(path)

    return make


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write records as JSON lines."""

    def write(name: str, *records: Any) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def process_environment() -> Callable[..., dict[str, str]]:
    """Variables for a process that is free of this one's settings for the hub, and waits for none for long."""
    dropped = ("HF_", "HUGGINGFACE_", "RAG_EVAL_", "DAGSTER_", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")

    def make(**variables: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(dropped)}
        # A proxy would be asked for 127.0.0.1 too.
        kept |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PYTHONPATH": str(ROOT)}
        kept |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "5", "HF_HUB_ETAG_TIMEOUT": "5"}
        return kept | variables

    return make


@pytest.fixture
def in_new_process(
    process_environment: Callable[..., dict[str, str]],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python with arguments in a process of its own."""

    def run(*arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=process_environment(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


class Hub(ThreadingHTTPServer):
    """Answers like the Hugging Face hub for one data set, and remembers what it was asked.

    Attributes:
        branches: branch to the commit that it points to.
        commits: commit to its files, path to bytes.
        requests: method and path of every request, in order.
        tokens: the Authorization headers that came.
        refusal: status and error code of the answer to every path that begins with `refused_below`.
        short: bytes that the body of every file lacks at its end, against what its HEAD says.
        short_says_so: whether the body's Content-Length is then the smaller one.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _HubHandler)
        self.branches: dict[str, str] = {}
        self.commits: dict[str, dict[str, bytes]] = {}
        self.requests: list[tuple[str, str]] = []
        self.tokens: list[str | None] = []
        self.refusal: tuple[int, str] | None = None
        self.refused_below = "/"
        self.short = 0
        self.short_says_so = False
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def publish(self, commit: str, files: dict[str, bytes], branch: str = "main") -> None:
        """Make a commit of `files` the newest of the branch."""
        self.commits[commit] = files
        self.branches[branch] = commit

    def fetched(self) -> Counter[str]:
        """How often the body of each file (commit/path) was asked for."""
        found = [path.partition("/resolve/")[2] for method, path in self.requests if method == "GET"]
        return Counter(path for path in found if path)

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.shutdown()
        self.server_close()
        self._thread.join(timeout=10)


class _HubHandler(BaseHTTPRequestHandler):
    server: Hub
    timeout = 10

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.requests.append((self.command, path))
        self.server.tokens.append(self.headers.get("Authorization"))
        api, files = f"/api/datasets/{REPOSITORY}", f"/datasets/{REPOSITORY}/resolve/"
        if self.server.refusal is not None and path.startswith(self.server.refused_below):
            return self._refuse(*self.server.refusal)
        if path.startswith(f"{api}/revision/"):
            return self._tell_commit(path.removeprefix(f"{api}/revision/"))
        if path.startswith(f"{api}/tree/"):
            return self._list(path.removeprefix(f"{api}/tree/"), query)
        if path.startswith(files):
            commit, _, name = path.removeprefix(files).partition("/")
            return self._send_file(commit, name)
        return self._refuse(404, "RepoNotFound")

    def _tell_commit(self, revision: str) -> None:
        commit = self.server.branches.get(revision, revision)
        if commit not in self.server.commits:
            return self._refuse(404, "RevisionNotFound")
        return self._send_json({"id": REPOSITORY, "sha": commit, "siblings": []})

    def _list(self, commit: str, query: str) -> None:
        """A page of the files of a commit; `after=N` in the query is this hub's way to say where it begins."""
        if commit not in self.server.commits:
            return self._refuse(404, "RevisionNotFound")
        begin = int(query.rpartition("after=")[2]) if "after=" in query else 0
        files = list(self.server.commits[commit].items())
        listed = [
            {
                "type": "file",
                "path": name,
                "size": len(content),
                "oid": hashlib.sha1(content).hexdigest(),
                "lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130},
            }
            for name, content in files[begin : begin + PAGE]
        ]
        following = f"{self.server.url}{self.path.partition('?')[0]}?after={begin + PAGE}"
        more = {"Link": f'<{following}>; rel="next"'} if begin + PAGE < len(files) else {}
        return self._send_json(listed, **more)

    def _send_file(self, commit: str, name: str) -> None:
        content = self.server.commits.get(commit, {}).get(name, b"")
        if not content:
            return self._refuse(404, "EntryNotFound")
        begin = int(self.headers.get("Range", "bytes=0-")[len("bytes=") :].split("-")[0])
        self.send_response(206 if begin else 200)
        lacking = self.server.short if self.server.short_says_so and self.command == "GET" else 0
        self.send_header("Content-Length", str(len(content) - begin - lacking))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[begin : len(content) - self.server.short])
        self.close_connection = True
        return None

    def _send_json(self, value: Any, **headers: str) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        for key, header in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, header)
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    yield server
    server.stop()
