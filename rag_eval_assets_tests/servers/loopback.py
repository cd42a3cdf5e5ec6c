"""Real HTTP servers on loopback: one that answers as a test scripts it, and the example service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    Attributes:
        status, body, headers: the response; a body that is no bytes is sent as JSON.
        silent: say nothing for ever.
        cut: send the headers and only so many bytes of the body, then close.
        stall: send the headers and half of the body, then nothing for ever.
        hang_up: close without a word.
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    cut: int | None = None
    stall: bool = False
    hang_up: bool = False

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Request:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class LoopbackServer:
    """Answers request number n with `replies[n]`, or with what `replies(request)` returns; the last reply repeats."""

    def __init__(self, replies: Sequence[Reply] | Callable[[Request], Reply]) -> None:
        self._replies = replies
        self.requests: list[Request] = []
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close everything; later connections are refused."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None and await self._answer(request, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection stays open."""
        number = len(self.requests)
        self.requests.append(request)
        if callable(self._replies):
            reply = self._replies(request)
        else:
            reply = self._replies[min(number, len(self._replies) - 1)]
        if reply.hang_up:
            return False
        if reply.silent:
            await asyncio.Event().wait()
        body = reply.content()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        head = f"HTTP/1.1 {reply.status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        part = body[: reply.cut] if reply.cut is not None else body[: len(body) // 2] if reply.stall else body
        writer.write(head.encode("latin-1") + b"\r\n" + part)
        await writer.drain()
        if reply.stall:
            await asyncio.Event().wait()
        return reply.cut is None


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


Serve = Callable[..., LoopbackServer]


@pytest.fixture
def serve() -> Generator[Serve]:
    """`serve(reply, reply, ...)` or `serve(function of a request)` starts a server that lives as long as the test."""
    running: list[LoopbackServer] = []

    def start(*replies: Any) -> LoopbackServer:
        scripted = replies[0] if len(replies) == 1 and callable(replies[0]) else list(replies)
        running.append(LoopbackServer(scripted))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def reply() -> type[Reply]:
    """The class of scripted replies."""
    return Reply


@dataclass
class RagService:
    """The example service in a process of its own."""

    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=10) as response:
            return json.load(response)

    def requests(self, path: str = "/query") -> int:
        return self.stats()["endpoints"].get(path, {"requests": 0})["requests"]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


StartService = Callable[..., RagService]


@contextlib.contextmanager
def example_services(home: Path) -> Generator[StartService]:
    """`start("--light", ...)` starts the example service, by default on a free port; all stop at the end."""
    running: list[RagService] = []

    def start(*flags: str, env: dict[str, str] | None = None) -> RagService:
        port = () if "--port" in flags else ("--port", "0")
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "rag_service"), *port, *flags],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RAG_EVAL_HOME": str(home), **(env or {})},
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        running.append(RagService(process, line.removeprefix("listening on ").strip()))
        return running[-1]

    try:
        yield start
    finally:
        for service in running:
            service.stop()


@pytest.fixture
def rag_service(tmp_path: Path) -> Generator[StartService]:
    """`rag_service("--light", ...)` starts the example service."""
    with example_services(tmp_path / "service_home") as start:
        yield start
