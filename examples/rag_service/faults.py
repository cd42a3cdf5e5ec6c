"""Trouble on demand, and a count of what arrived: an ASGI layer around the service."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

UNTOUCHED = ("/stats", "/corpus/version", "/docs", "/openapi.json")
"""Neither counted nor disturbed."""


@dataclass(frozen=True)
class Faults:
    """What goes wrong. `every` counts requests from 1; 0 means never. A share is decided by body and try alone.

    Attributes:
        latency_ms: how long every answer takes.
        fail_every, fail_rate, fail_status: refuse so with a status.
        limit_every, retry_after: answer 429 with this `Retry-After`.
        drop_every: close the connection in the middle of the body.
        html_every: answer 200 with an HTML page.
        key: what `Authorization: Bearer` must hold.
        echo_key: repeat what was sent as Authorization in every error text.
        echo_in_answers: repeat it in answers too.
    """

    latency_ms: float = 0.0
    fail_every: int = 0
    fail_rate: float = 0.0
    fail_status: int = 500
    limit_every: int = 0
    retry_after: str = "0"
    drop_every: int = 0
    html_every: int = 0
    key: str | None = None
    echo_key: bool = False
    echo_in_answers: bool = False


@dataclass
class Stats:
    """Requests by endpoint, and by endpoint and body."""

    requests: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    bodies: dict[str, Counter[str]] = field(default_factory=dict)
    in_flight: int = 0
    most_in_flight: int = 0
    connections: set[tuple[Any, ...]] = field(default_factory=set)

    def to_json(self) -> dict[str, Any]:
        """Per endpoint: requests, those that were answered with 200, distinct bodies, and repeats of a body."""
        endpoints = {
            path: {
                "requests": count,
                "answered": self.answered[path],
                "distinct": len(self.bodies[path]),
                "repeats": count - len(self.bodies[path]),
            }
            for path, count in sorted(self.requests.items())
        }
        return {
            "requests": sum(self.requests.values()),
            "endpoints": endpoints,
            "most_in_flight": self.most_in_flight,
            "connections": len(self.connections),
            "bodies": {path: dict(counts) for path, counts in sorted(self.bodies.items())},
        }


class Disturbed:
    """`app` with `faults` in front of it."""

    def __init__(self, app: Any, faults: Faults, stats: Stats) -> None:
        self._app, self._faults, self._stats = app, faults, stats

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Count the request, then disturb it or pass it on."""
        if scope["type"] != "http" or scope["path"].startswith(UNTOUCHED):
            await self._app(scope, receive, send)
            return
        stats = self._stats
        stats.in_flight += 1
        stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)
        try:
            await self._serve(scope, receive, send)
        finally:
            stats.in_flight -= 1

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        faults, stats, path = self._faults, self._stats, scope["path"]
        body = await _whole(receive)
        digest = hashlib.sha256(scope["query_string"] + b"\n" + body).hexdigest()
        stats.requests[path] += 1
        stats.connections.add(tuple(scope.get("client") or ()))
        tries = stats.bodies.setdefault(path, Counter())
        tries[digest] += 1
        number = stats.requests.total()
        given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        await asyncio.sleep(faults.latency_ms / 1000)
        echo = f" You sent: {given}" if faults.echo_key else ""
        if faults.key is not None and given != f"Bearer {faults.key}":
            await _refuse(send, 401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}")
        elif _is_nth(number, faults.limit_every):
            await _refuse(send, 429, f"Too many requests.{echo}", {"retry-after": faults.retry_after})
        elif _is_nth(number, faults.fail_every) or _share(digest, tries[digest]) < faults.fail_rate:
            await _refuse(send, faults.fail_status, f"The service stumbled.{echo}")
        elif _is_nth(number, faults.html_every):
            await _reply(send, 200, b"<!DOCTYPE html><html><body>Please sign in.</body></html>", "text/html")
        else:
            if not _is_nth(number, faults.drop_every):
                stats.answered[path] += 1
            await self._pass_on(scope, body, send, given, drop=_is_nth(number, faults.drop_every))

    async def _pass_on(self, scope: Any, body: bytes, send: Any, given: str, *, drop: bool) -> None:
        async def once() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        if not drop and not self._faults.echo_in_answers:
            await self._app(scope, once, send)
            return
        sent: list[dict[str, Any]] = []

        async def keep(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._app(scope, once, keep)
        status = sent[0]["status"]
        answer = b"".join(message.get("body", b"") for message in sent[1:])
        if self._faults.echo_in_answers:
            answer = answer.replace(b'"answer":"', b'"answer":' + json.dumps(f"{given} ").encode()[:-1])
        await _reply(send, status, answer, "application/json", drop=drop)


def _is_nth(number: int, every: int) -> bool:
    return every > 0 and number % every == 0


def _share(digest: str, attempt: int) -> float:
    """A number in [0, 1) that depends on nothing but body and try, so that every run meets the same trouble."""
    return int(hashlib.sha256(f"{digest}/{attempt}".encode()).hexdigest()[:8], 16) / 2**32


async def _whole(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _refuse(send: Any, status: int, message: str, headers: dict[str, str] | None = None) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    await _reply(send, status, body, "application/json", headers=headers)


async def _reply(
    send: Any, status: int, body: bytes, kind: str, *, headers: dict[str, str] | None = None, drop: bool = False
) -> None:
    given = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    # Half of it and no more: the server then closes the connection, since the answer stays incomplete.
    part = body[: len(body) // 2] if drop else body
    await send({"type": "http.response.body", "body": part, "more_body": drop})
