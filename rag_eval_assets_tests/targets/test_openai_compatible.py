"""The openai-compatible target against servers that speak chat completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.targets.base import Answer, Passage

Ask = Callable[..., Answer]


def target(url: str, **further: Any) -> dict[str, Any]:
    return {"type": "openai-compatible", "url": url, "model": "m-1", "max_retries": 0, **further}


def completion(content: Any, **further: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content}}], **further}


def test_a_question_is_one_chat_completion_without_a_key_that_nobody_named(ask: Ask, serve, reply) -> None:
    server = serve(reply(200, completion("On Mondays.")))
    answer = ask(target(server.url + "/v1//"), "When?")
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.json() == {"model": "m-1", "messages": [{"role": "user", "content": "When?"}]}
    assert "authorization" not in request.headers
    assert (answer.text, answer.generator, answer.passages) == ("On Mondays.", "m-1", None)


def test_system_prompt_params_key_and_query_are_sent(ask: Ask, serve, reply, monkeypatch) -> None:
    monkeypatch.setenv("RAG_TEST_KEY", "correct-horse")
    server = serve(reply(200, completion("yes")))
    ask(
        target(
            server.url + "/d?api-version=2024-02-01",
            api_key_env="RAG_TEST_KEY",
            system="Answer briefly.",
            params={"temperature": 0, "stop": ["\n"]},
            prompt="Q: {question}\nA:",
        ),
        "{question} when?",
    )
    (request,) = server.requests
    assert request.path == "/d/chat/completions?api-version=2024-02-01"
    assert request.headers["authorization"] == "Bearer correct-horse"
    assert request.json() == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "Q: {question} when?\nA:"},
        ],
        "temperature": 0,
        "stop": ["\n"],
    }


def test_model_usage_cost_and_passages_are_read(ask: Ask, serve, reply) -> None:
    usage = {"prompt_tokens": 2000, "completion_tokens": 1000, "total_tokens": 3000}
    document = completion("yes", model="m-1-2026", usage=usage, sources=[{"id": "p", "text": "The ferry"}])
    server = serve(reply(200, document))
    prices = {"input_usd_per_million_tokens": 1.0, "output_usd_per_million_tokens": 2.0}
    answer = ask(target(server.url, prices=prices, passages={"list": "/sources"}))
    assert (answer.generator, answer.input_tokens, answer.output_tokens) == ("m-1-2026", 2000, 1000)
    assert answer.cost_usd == 0.004
    assert answer.passages == (Passage("p", None, "The ferry", None),)


def test_a_content_of_parts_is_their_text_and_null_is_an_empty_answer(ask: Ask, serve, reply) -> None:
    parts = [{"type": "text", "text": "On "}, {"type": "image", "text": "no"}, {"type": "text", "text": "Mondays."}]
    assert ask(target(serve(reply(200, completion(parts))).url)).text == "On Mondays."
    assert ask(target(serve(reply(200, completion(None))).url)).text is None


@pytest.mark.parametrize("document", [{"choices": []}, {"error": {"message": "overloaded"}}, completion(3), []])
def test_an_answer_of_another_shape_is_a_bad_response(ask: Ask, serve, reply, document: Any) -> None:
    with pytest.raises(CallError, match="/choices/0/message/content") as caught:
        ask(target(serve(reply(200, document)).url))
    assert caught.value.kind == "bad_response"


def test_the_example_service_answers_with_passages_and_usage(ask: Ask, rag_service) -> None:
    service = rag_service("--light")
    answer = ask(target(service.url + "/v1", passages={"list": "/passages"}), "How long does the crossing take?")
    assert answer.text
    assert answer.generator == "light"
    assert all(passage.document_id for passage in answer.passages or [Passage()])
    assert answer.input_tokens == 6
