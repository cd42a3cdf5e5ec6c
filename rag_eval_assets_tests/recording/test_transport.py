"""The way out: what is sent, what is tried again and when, what is read, and what an error says."""

from __future__ import annotations

import asyncio
import datetime as dt
import email.utils
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.retries import RetryPolicy, retry_after_seconds
from rag_eval_assets.recording.transport import HttpRequest, HttpResponse, Transport, endpoint

BODY = b'{"input":["x"],"model":"embed"}'


class Waits(list[float]):
    """Notes how long a transport would have waited."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def send(url: str, *, waits: Waits | None = None, **policy: Any) -> HttpResponse:
    async def run() -> HttpResponse:
        async with Transport(4, sleep=Waits() if waits is None else waits) as transport:
            return await transport.send(HttpRequest("POST", url, {}, BODY), RetryPolicy(**policy))

    return asyncio.run(run())


def failure(url: str, *, waits: Waits | None = None, **policy: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        send(url, waits=waits, **policy)
    return caught.value


def with_transport(use: Callable[[Transport], Awaitable[Any]], *, concurrency: int = 4, offline: bool = False) -> Any:
    async def run() -> Any:
        async with Transport(concurrency, offline=offline, sleep=Waits()) as transport:
            return await use(transport)

    return asyncio.run(run())


def test_an_answer_is_one_request_with_the_body_as_given_and_no_key_that_nobody_named(serve, reply) -> None:
    server = serve(reply(200, {"ok": True}))
    response = send(server.url + "/v1/embeddings")
    assert (response.json(), response.attempts, response.status) == ({"ok": True}, 1, 200)
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/embeddings", BODY)
    assert "authorization" not in request.headers


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 301, 307])
def test_a_refusal_is_permanent_and_named_by_its_status(serve, reply, status: int) -> None:
    server = serve(reply(status, {"error": "no"}))
    error = failure(server.url, max_retries=2)
    assert (error.kind, error.attempts, len(server.requests)) == (str(status), 1, 1)
    assert f"status {status}" in str(error)
    assert server.url in str(error)


def test_three_times_503_is_three_attempts_with_waits_of_half_a_second_and_one(serve, reply) -> None:
    server, waits = serve(reply(503)), Waits()
    error = failure(server.url, waits=waits, max_retries=2)
    assert (error.kind, error.attempts, len(server.requests), waits) == ("503", 3, 3, [0.5, 1.0])
    assert "after 3 attempts" in str(error)


def test_the_waits_double_up_to_ten_seconds(serve, reply) -> None:
    waits = Waits()
    failure(serve(reply(500)).url, waits=waits, max_retries=7)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_retry_after_takes_the_place_of_the_wait(serve, reply) -> None:
    limited = [reply(429, headers={"Retry-After": given}) for given in ("0", "1.5", "86400", "soon", "-1")]
    server, waits = serve(*limited, reply(200)), Waits()
    assert send(server.url, waits=waits, max_retries=5).attempts == 6
    assert waits == [0.0, 1.5, 60.0, 4.0, 8.0]  # a day is capped; what cannot be read leaves the usual wait


def test_retry_after_may_be_a_date_and_is_counted_from_the_servers_own_clock() -> None:
    now = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    later = email.utils.format_datetime(now + dt.timedelta(seconds=30), usegmt=True)
    assert retry_after_seconds({"retry-after": later}, now) == 30
    servers = {"retry-after": later, "date": email.utils.format_datetime(now, usegmt=True)}
    assert retry_after_seconds(servers, now - dt.timedelta(days=900)) == 30
    assert retry_after_seconds({"retry-after": later}, now + dt.timedelta(hours=1)) == 0
    assert retry_after_seconds({"retry-after": "nan"}) is None
    assert retry_after_seconds({}) is None


def test_a_silent_server_is_a_timeout_that_names_the_budget(serve, reply) -> None:
    error = failure(serve(reply(silent=True)).url, timeout_seconds=0.1, max_retries=0)
    assert error.kind == "timeout"
    assert "0.1 s" in str(error)


def test_the_budget_covers_the_body_and_every_attempt_has_its_own(serve, reply) -> None:
    server = serve(reply(200, {"long": "x" * 100}, stall=True))
    error = failure(server.url, timeout_seconds=0.1, max_retries=1)
    assert (error.kind, error.attempts, len(server.requests)) == ("timeout", 2, 2)


@pytest.mark.parametrize("trouble", [{"cut": 5}, {"hang_up": True}], ids=["in the body", "before the answer"])
def test_a_dropped_connection_is_tried_again(serve, reply, trouble: dict[str, Any]) -> None:
    server = serve(reply(200, {"text": "long enough to be cut"}, **trouble), reply(200, {"text": "whole"}))
    response = send(server.url)
    assert (response.json(), response.attempts) == ({"text": "whole"}, 2)


def test_a_dead_server_reads_as_one_that_cannot_be_reached(serve, reply) -> None:
    server = serve(reply())
    server.stop()
    error = failure(server.url, max_retries=1)
    assert (error.kind, error.attempts) == ("transport", 2)
    assert "cannot be reached" in str(error)


def test_a_body_beyond_the_bound_is_not_read_to_its_end_nor_asked_for_again(serve, reply) -> None:
    bomb = gzip.compress(b" " * 2_000_000)
    server = serve(reply(200, bomb, headers={"content-encoding": "gzip"}))
    error = failure(server.url, max_response_bytes=1_000_000, max_retries=2)
    assert (error.kind, len(server.requests)) == ("too_large", 1)
    assert "1000000 bytes" in str(error)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!DOCTYPE html><p>Sign in", "an HTML page"),
        (b'{"answer": "half', "malformed JSON"),
        (b"upstream error", "but text"),
        (b"", "empty"),
        (b"[" * 100_000, "malformed JSON"),
    ],
)
def test_a_success_that_is_no_json_says_what_it_is_instead(serve, reply, body: bytes, words: str) -> None:
    response = send(serve(reply(200, body)).url)
    with pytest.raises(CallError, match=words) as caught:
        response.json()
    assert caught.value.kind == "bad_response"


def test_an_error_shows_the_first_two_hundred_characters_on_one_line(serve, reply) -> None:
    error = failure(serve(reply(400, b"a\r\n\tb" + b"x" * 1000)).url)
    assert str(error).endswith("a b" + "x" * (200 - 5))


def test_connections_are_reused_and_never_more_than_the_bound(serve, reply) -> None:
    server = serve(reply(200))

    async def many(transport: Transport) -> None:
        request = HttpRequest("POST", server.url, {}, BODY)
        await asyncio.gather(*[transport.send(request, RetryPolicy()) for _ in range(40)])

    with_transport(many, concurrency=4)
    assert len(server.requests) == 40
    assert server.connections <= 4


def test_no_cookie_of_one_answer_is_sent_with_the_next_question(serve, reply) -> None:
    server = serve(reply(200, headers={"set-cookie": "session=1; Path=/"}))

    async def twice(transport: Transport) -> None:
        for _ in range(2):
            await transport.send(HttpRequest("GET", server.url), RetryPolicy())

    with_transport(twice)
    assert all("cookie" not in request.headers for request in server.requests)


def test_an_offline_transport_connects_to_nothing(serve, reply) -> None:
    server = serve(reply())
    with pytest.raises(CallError) as caught:
        with_transport(lambda t: t.send(HttpRequest("GET", server.url), RetryPolicy()), offline=True)
    assert (caught.value.kind, caught.value.attempts) == ("blocked", 0)
    assert server.connections == 0


def test_a_redirect_is_not_followed_so_that_no_key_goes_to_another_host(serve, reply) -> None:
    other = serve(reply())
    server = serve(reply(307, headers={"location": other.url}))
    assert "redirect" in str(failure(server.url))
    assert other.requests == []


def test_a_url_is_sent_as_it_is_written(serve, reply) -> None:
    server = serve(reply())
    send(server.url + "/a%2Fb?q=1%2B1%26x%20y&api-version=2024-02-01")
    assert server.requests[0].path == "/a%2Fb?q=1%2B1%26x%20y&api-version=2024-02-01"


def test_a_key_is_read_when_a_call_is_made_and_an_empty_variable_is_an_unset_one(serve, reply, monkeypatch) -> None:
    async def bearer(transport: Transport) -> dict[str, str]:
        return transport.bearer("RAG_TEST_KEY")

    monkeypatch.setenv("RAG_TEST_KEY", "  sk-test-1234567890\n")
    assert with_transport(bearer) == {"Authorization": "Bearer sk-test-1234567890"}
    for value in ("", "  "):
        monkeypatch.setenv("RAG_TEST_KEY", value)
        with pytest.raises(ConfigurationError, match="RAG_TEST_KEY"):
            with_transport(bearer)


@pytest.mark.parametrize(
    "echo",
    [
        "{key}",
        "Bearer {key}",
        '{{"message": "{json}"}}',
        "http://h/?api_key={url}",
        "Basic {base64}",
        "x" * 190 + "{key}",  # half of it would stand before the cut
    ],
)
def test_a_key_that_the_server_repeats_stands_in_no_error(serve, reply, monkeypatch, echo: str) -> None:
    import base64
    import json
    import urllib.parse

    key = 'pa"ss/wörd+of=mine'
    spelled = {
        "key": key,
        "json": json.dumps(key)[1:-1],
        "url": urllib.parse.quote(key, safe=""),
        "base64": base64.b64encode(key.encode()).decode(),
    }
    monkeypatch.setenv("RAG_TEST_KEY", key)
    server = serve(reply(401, echo.format(**spelled).encode()))

    async def ask(transport: Transport) -> None:
        key = transport.resolve("RAG_TEST_KEY")
        await transport.send(HttpRequest("GET", server.url, {"X-Key": urllib.parse.quote(key)}), RetryPolicy())

    with pytest.raises(CallError) as caught:
        with_transport(ask)
    shown = repr(caught.value) + repr(caught.value.__cause__) + repr(caught.value.__context__)
    assert not any(form in shown or form[:8] in shown for form in spelled.values())


def test_what_looks_like_a_secret_is_left_out_even_where_nobody_named_it(serve, reply) -> None:
    server = serve(
        reply(401, b"Incorrect API key provided: sk-proj-abcdef123456. Authorization: Bearer abcdef0123456789")
    )
    error = str(failure(server.url.replace("//", "//user:hunter2@") + "/v1?api_key=abc123&top=5"))
    assert not any(secret in error for secret in ("hunter2", "abc123", "sk-proj", "abcdef0123"))
    assert "top=5" in error


def test_a_key_that_the_server_repeats_in_an_answer_is_no_part_of_it(serve, reply, monkeypatch) -> None:
    monkeypatch.setenv("RAG_TEST_KEY", "correct-horse-battery")
    server = serve(reply(200, {"answer": "you sent correct-horse-battery"}))

    async def ask(transport: Transport) -> HttpResponse:
        return await transport.send(HttpRequest("GET", server.url, transport.bearer("RAG_TEST_KEY")), RetryPolicy())

    assert with_transport(ask).json() == {"answer": "you sent [redacted]"}


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("http://h/v1", "http://h/v1/embeddings"),
        ("http://h/v1///", "http://h/v1/embeddings"),
        ("http://h", "http://h/embeddings"),
        ("http://h/d/?api-version=2024-02-01", "http://h/d/embeddings?api-version=2024-02-01"),
    ],
)
def test_an_endpoint_lies_below_the_url_and_keeps_its_query(url: str, whole: str) -> None:
    assert endpoint(url, "embeddings") == whole
