"""The http target: what it sends for a question, what it reads, and how each failure reads."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.targets.base import Answer, Passage

QUESTION = 'Who said "no \\ yes"?\n{question} & ümläut=50%+1 🚀'

Ask = Callable[..., Answer]


def target(url: str, **further: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "url": url,
        "body": {"question": "{question}"},
        "response": {"answer": "/answer"},
        "max_retries": 0,
        **further,
    }


def test_the_question_goes_into_the_texts_of_a_json_body_whatever_it_holds(ask: Ask, serve, reply) -> None:
    server = serve(reply(200, {"answer": "nobody"}))
    body = {"messages": [{"text": "Q: {question}"}], "{question}": 5, "top_k": 3, "raw": "{}"}
    assert ask(target(server.url, body=body), QUESTION).text == "nobody"
    (request,) = server.requests
    assert request.json() == {"messages": [{"text": f"Q: {QUESTION}"}], "{question}": 5, "top_k": 3, "raw": "{}"}
    assert (request.method, request.headers["content-type"]) == ("POST", "application/json")


def test_a_body_that_is_a_text_gets_the_question_escaped_as_its_content_type_asks(ask: Ask, serve, reply) -> None:
    server = serve(reply(200, {"answer": "nobody"}))
    as_json = target(server.url, body='{"q": "{question}", "k": 3}')
    form = target(server.url, body="k=3&q={question}", headers={"content-type": "application/x-www-form-urlencoded"})
    plain = target(server.url, body="Q: {question}", headers={"Content-Type": "text/plain; charset=utf-8"})
    for made in (as_json, form, plain):
        ask(made, QUESTION)
    first, second, third = server.requests
    assert first.json() == {"q": QUESTION, "k": 3}
    assert urllib.parse.parse_qs(second.body.decode()) == {"k": ["3"], "q": [QUESTION]}
    assert third.body.decode() == f"Q: {QUESTION}"


def test_a_question_in_the_url_is_percent_encoded(ask: Ask, serve, reply) -> None:
    server = serve(reply(200, {"answer": "nobody"}))
    get = {**target(server.url + "/ask/{question}?q={question}&k=3", method="GET"), "body": None}
    ask({name: value for name, value in get.items() if value is not None}, QUESTION)
    path, _, query = server.requests[0].path.partition("?")
    assert urllib.parse.unquote(path) == f"/ask/{QUESTION}"
    assert urllib.parse.parse_qs(query) == {"q": [QUESTION], "k": ["3"]}
    assert (server.requests[0].method, server.requests[0].body) == ("GET", b"")


def test_headers_come_from_the_suite_and_secrets_from_the_environment(ask: Ask, serve, reply, monkeypatch) -> None:
    monkeypatch.setenv("RAG_TEST_TOKEN", "correct-horse")
    server = serve(reply(200, {"answer": "yes"}))
    headers = {"X-Tenant": "north", "Authorization": {"env": "RAG_TEST_TOKEN", "prefix": "Bearer "}}
    ask(target(server.url, headers=headers))
    sent = server.requests[0].headers
    assert (sent["x-tenant"], sent["authorization"]) == ("north", "Bearer correct-horse")


def test_an_unset_variable_is_a_configuration_error_at_the_first_call(ask: Ask, serve, reply, monkeypatch) -> None:
    monkeypatch.delenv("RAG_TEST_TOKEN", raising=False)
    server = serve(reply(200, {"answer": "yes"}))
    with pytest.raises(ConfigurationError, match="RAG_TEST_TOKEN"):
        ask(target(server.url, headers={"Authorization": {"env": "RAG_TEST_TOKEN"}}))
    assert server.requests == []


def test_answer_passages_generator_usage_and_cost_are_read(ask: Ask, serve, reply) -> None:
    document = {
        "answer": "On Mondays.",
        "model": "model-7",
        "hits": [{"id": "p1", "text": "The ferry", "score": 0.5}],
        "usage": {"in": 1_000_000, "out": 500_000},
    }
    server = serve(reply(200, document))
    response = {
        "answer": "/answer",
        "generator": "/model",
        "passages": {"list": "/hits"},
        "input_tokens": "/usage/in",
        "output_tokens": "/usage/out",
    }
    prices = {"input_usd_per_million_tokens": 1.0, "output_usd_per_million_tokens": 4.0}
    answer = ask(target(server.url, response=response, prices=prices))
    assert (answer.text, answer.generator, answer.cost_usd) == ("On Mondays.", "model-7", 3.0)
    assert answer.passages == (Passage("p1", None, "The ferry", 0.5),)
    assert (answer.input_tokens, answer.output_tokens, answer.attempts) == (1_000_000, 500_000, 1)


def test_the_attempts_of_an_answer_are_counted(ask: Ask, serve, reply) -> None:
    server = serve(reply(429, headers={"Retry-After": "0"}), reply(200, {"answer": "yes"}))
    assert ask(target(server.url, max_retries=1)).attempts == 2


def test_each_failure_reads_differently(ask: Ask, serve, reply) -> None:
    dead = serve(reply())
    dead.stop()
    told = {}
    for name, given, url in [
        ("refused", reply(401, {"error": "who are you"}), None),
        ("slow", reply(silent=True), None),
        ("page", reply(200, b"<html>Sign in</html>"), None),
        ("broken", reply(200, b'{"answer": "On Mon'), None),
        ("elsewhere", reply(200, {"error": "overloaded"}), None),
        ("dead", reply(), dead.url),
    ]:
        with pytest.raises(CallError) as caught:
            ask(target(url or serve(given).url, timeout_seconds=0.2))
        told[name] = f"{caught.value.kind}: {caught.value}"
    expected = {
        "refused": ["401: ", "who are you"],
        "slow": ["timeout: ", "0.2 s"],
        "page": ["bad_response: ", "an HTML page", "Sign in"],
        "broken": ["bad_response: ", "malformed JSON"],
        "elsewhere": ["bad_response: ", "has nothing at '/answer': the top is an object with error", "overloaded"],
        "dead": ["transport: ", "cannot be reached"],
    }
    assert {name: [word for word in words if word in told[name]] for name, words in expected.items()} == expected
    assert len(set(told.values())) == len(told)


@pytest.mark.parametrize("spelled", ["correct-horse-battery", "correct\\u002dhorse-battery"])
def test_a_key_that_the_service_repeats_stands_in_no_answer(ask: Ask, serve, reply, monkeypatch, spelled: str) -> None:
    monkeypatch.setenv("RAG_TEST_TOKEN", "correct-horse-battery")
    server = serve(reply(200, f'{{"answer": "you sent {spelled}"}}'.encode()))
    answer = ask(target(server.url, headers={"X-Api-Key": {"env": "RAG_TEST_TOKEN"}}))
    assert answer.text == "you sent [redacted]"


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"url": "ftp://h/{question}"}, "url", "http"),
        ({"url": "http://user:abcdef123456@h/"}, "url", "holds a user, a password or a key"),
        ({"url": "http://h/?q={questoin}"}, "", "the one placeholder is {question}"),
        ({"body": {"question": "{questoin}"}}, "", "holds the placeholder {question}"),
        ({"method": "GET"}, "", "a GET request has no 'body'"),
        ({"headers": {"Authorization": "Bearer abcdef123456"}}, "headers", "looks like a secret"),
        ({"headers": {"X-Api-Key": "abc"}}, "headers", "looks like a secret"),
        ({"headers": {"X-Note": "sk-abcdef123456"}}, "headers", "looks like a secret"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers", "stands twice"),
        ({"headers": {"X-A": "a\nb"}}, "headers", "line break"),
        (
            {"headers": {"X-A": {"env": "sk-abcdef123456"}}},
            "headers.X-A.env",
            "is no name of an environment variable (",
        ),
        ({"headers": {"X-A": {"env": "A", "prefx": ""}}}, "headers.X-A", "did you mean 'prefix'?"),
        ({"headers": {"X-A": 5}}, "headers.X-A", "got 5"),
        (
            {"response": {"answer": "answer"}},
            "response.answer",
            "is no JSON pointer; its parts begin with '/', as in /answer",
        ),
        ({"response": {"anwser": "/a"}}, "response", "did you mean 'answer'?"),
        ({"timeout": 5}, "", "did you mean 'timeout_seconds'?"),
    ],
)
def test_faults_of_the_suite_are_found_when_it_is_loaded(
    suite_of: Callable[..., LoadedSuite], change: dict[str, Any], path: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        suite_of({**target("http://h/"), **change})
    place = f"targets.service.{path}".rstrip(".")
    assert f"{place}: " in str(caught.value)
    assert words in str(caught.value)
    assert "abcdef123456" not in str(caught.value)
