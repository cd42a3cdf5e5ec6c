"""The one way out: every HTTP call of targets and scorers, with bounded concurrency, timeouts, retries and redaction.

It knows nothing of recordings; a channel stands in front of it and decides whether a call is made at all.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rag_eval_assets import __version__
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.retries import RetryPolicy
from rag_eval_assets.recording.secrets import Redactor, secret_value

if TYPE_CHECKING:
    import aiohttp

USER_AGENT = f"rag-eval/{__version__}"

EXCERPT_CHARACTERS = 200
"""So much of a body stands in an error text."""


ERROR_BYTES = 16_384
"""So much of the body of a refusal is read; the rest of it is of no interest."""


@dataclass(frozen=True)
class HttpRequest:
    """One request as it goes out; `body` is sent as it is."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True)
class HttpResponse:
    """A response with a status from 200 to 299, its body read whole.

    Attributes:
        status: the status.
        headers: header names in lower case.
        body: the decompressed body, without secrets that the transport knows.
        attempts: requests that were sent, this one included.
        latency_ms: milliseconds of the attempt that succeeded.
        url: the request's URL as error texts may show it.
        redactor: of the transport that received it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: int
    latency_ms: float
    url: str
    redactor: Redactor = field(repr=False)

    def json(self) -> Any:
        """The body as JSON. Raises CallError `bad_response` where it is none, saying what it looks like instead."""
        try:
            return json.loads(self.body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            raise self.bad(f"is not JSON but {self._looks_like()}: {excerpt(self.body)}") from None

    def bad(self, problem: str) -> CallError:
        """The error for a body that arrived and is not what it should be; permanent, so not tried again."""
        text = f"the answer of {self.url} (status {self.status}) {problem}"
        return CallError("bad_response", self.redactor.error_text(text), self.attempts)

    def _looks_like(self) -> str:
        start = self.body[:EXCERPT_CHARACTERS].lstrip().lower()
        if not start:
            return "empty"
        if start.startswith((b"<!doctype html", b"<html")):
            return "an HTML page"
        return "text" if not start.startswith((b"{", b"[")) else "malformed JSON"


class Transport:
    """A pooled HTTP client. It belongs to one event loop; targets and scorers each own one and close it.

    Args:
        concurrency: requests under way at the same time, waits between attempts included: who is told to wait with
            one call does not send others meanwhile.
        offline: connect to nothing; every call fails as `blocked`.
        sleep: what waits between attempts.
    """

    def __init__(
        self,
        concurrency: int,
        *,
        offline: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.redactor = Redactor()
        self._concurrency = concurrency
        self._offline = offline
        self._sleep = sleep
        self._slots = asyncio.Semaphore(concurrency)
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def resolve(self, variable: str) -> str:
        """The secret in an environment variable, which from now on is redacted.

        To be called where a call is really made: a replay then never needs the variable.

        Raises:
            ConfigurationError: the variable is unset or empty.
        """
        value = secret_value(variable)
        if value is None:
            raise ConfigurationError(
                f"environment variable {variable!r} is unset or empty, and a call needs it",
                fix="Set it, or replay recorded calls with --cache replay",
            )
        self.redactor.learn(value)
        return value

    def bearer(self, variable: str | None) -> dict[str, str]:
        """The Authorization header with the key in an environment variable; no header where none is named."""
        return {} if variable is None else {"Authorization": f"Bearer {self.resolve(variable)}"}

    async def send(self, request: HttpRequest, policy: RetryPolicy) -> HttpResponse:
        """Send `request`, again where that may help.

        Raises:
            CallError: no attempt ended with a status from 200 to 299 and a whole body.
        """
        shown = self.redactor.error_text(request.url)
        if self._offline:
            raise CallError("blocked", f"{request.method} {shown} was not sent: this run may not go out", attempts=0)
        async with self._slots:
            for attempt in range(1, policy.max_retries + 2):
                outcome = await self._attempt(request, policy, attempt, shown)
                if isinstance(outcome, HttpResponse):
                    return outcome
                if not outcome.transient or attempt > policy.max_retries:
                    raise self._error(outcome, attempt, shown)
                await self._sleep(policy.wait_seconds(attempt - 1, outcome.headers))
        raise AssertionError("every attempt returns, raises or waits")

    async def _attempt(
        self, request: HttpRequest, policy: RetryPolicy, attempt: int, shown: str
    ) -> HttpResponse | _Failure:
        import aiohttp

        started = time.perf_counter()
        try:
            async with asyncio.timeout(policy.timeout_seconds), self._open(request) as response:
                ok = 200 <= response.status < 300
                body = await (_read(response, policy.max_response_bytes) if ok else response.content.read(ERROR_BYTES))
                status, headers = response.status, {name.lower(): value for name, value in response.headers.items()}
        except TimeoutError:
            return _Failure("timeout", f"no whole answer within {policy.timeout_seconds:g} s", transient=True)
        except _TooLargeError:
            return _Failure("too_large", f"the answer is larger than {policy.max_response_bytes} bytes")
        except (aiohttp.InvalidURL, ValueError) as error:
            return _Failure("bad_request", f"it cannot be sent ({type(error).__name__})")
        except (aiohttp.ClientError, OSError) as error:
            return _Failure("transport", _reason(error), transient=True)
        if not ok:
            return self._status_failure(status, headers, body)
        latency_ms = (time.perf_counter() - started) * 1000
        return HttpResponse(status, headers, self.redactor.body(body), attempt, latency_ms, shown, self.redactor)

    def _open(self, request: HttpRequest) -> aiohttp.client._RequestContextManager:  # pyright: ignore[reportPrivateUsage]
        import aiohttp
        import yarl

        if self._session is None:
            # No cookies: an answer must not depend on the questions before it.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._concurrency),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session.request(
            request.method,
            # As it is written: the library would otherwise decode what a template has encoded.
            yarl.URL(request.url, encoded=request.url.isascii()),
            data=request.body,
            headers={"User-Agent": USER_AGENT, **request.headers},
            allow_redirects=False,  # a redirect could carry the key to another host, and turns POST into GET
            proxy=self._proxy(request.url),
        )

    def _proxy(self, url: str) -> str | None:
        """The environment's proxy for `url`. Not by aiohttp's `trust_env`, which would send the passwords of .netrc."""
        parts = urllib.parse.urlsplit(url)
        if parts.netloc not in self._proxies:  # looking it up takes longer than all else that a request needs
            direct = not parts.hostname or bool(urllib.request.proxy_bypass(parts.hostname))
            self._proxies[parts.netloc] = None if direct else urllib.request.getproxies().get(parts.scheme)
        return self._proxies[parts.netloc]

    def _status_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> _Failure:
        # Redacted before it is cut: half a key would not be found.
        text = excerpt(self.redactor.error_text(body.decode("utf-8", "replace")).encode())
        said = f"status {status}" + (f": {text}" if text else "")
        if 300 <= status < 400 and "location" in headers:
            said = f"status {status}, a redirect to {headers['location']}, which is not followed"
        return _Failure(str(status), said, headers, transient=status == 429 or status >= 500)

    def _error(self, failure: _Failure, attempts: int, shown: str) -> CallError:
        tries = f" after {attempts} attempts" if attempts > 1 else ""
        return CallError(failure.kind, self.redactor.error_text(f"{shown}{tries}: {failure.message}"), attempts)


@dataclass(frozen=True)
class _Failure:
    """What became of one attempt that did not succeed."""

    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    transient: bool = False


class _TooLargeError(Exception):
    pass


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > limit:
            raise _TooLargeError
        parts.append(part)
    return b"".join(parts)


def endpoint(url: str, path: str) -> str:
    """`path` below `url`: slashes at the end of `url` do not count, its query stays (`?api-version=...` of Azure)."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}"))


def excerpt(body: bytes) -> str:
    """The beginning of a body on one line, for an error text."""
    text = body[: EXCERPT_CHARACTERS * 4].decode("utf-8", "replace")[:EXCERPT_CHARACTERS]
    return " ".join(text.split())


def _reason(error: Exception) -> str:
    """Why a connection failed, without the addresses that the library's own texts hold."""
    import aiohttp

    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, aiohttp.ClientPayloadError):
        return "the connection was dropped in the middle of the answer"
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(cause, OSError) and cause.strerror:
        return f"it cannot be reached ({cause.strerror})"
    return f"the connection failed ({type(cause).__name__})"
