"""The `http` target: any service that answers in JSON, described by templates for the question and pointers."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from pydantic import JsonValue

from rag_eval_assets.recording.channel import Channel
from rag_eval_assets.recording.request import http_identity
from rag_eval_assets.recording.transport import HttpRequest
from rag_eval_assets.suite.targets import QUESTION, HttpTarget
from rag_eval_assets.targets.base import Answer
from rag_eval_assets.targets.pointers import read_answer
from rag_eval_assets.targets.remote import RemotePipeline

JSON_TYPE = "application/json"


class HttpPipeline(RemotePipeline):
    """A service that is asked as `config` describes; see the module."""

    def __init__(self, config: HttpTarget, channel: Channel, concurrency: int) -> None:
        self._http = config
        super().__init__(config, channel, concurrency)

    def _call_identity(self) -> dict[str, Any]:
        config = self._http
        pointers = config.response.model_dump(mode="json", exclude={"answer"}, exclude_unset=True)
        return http_identity(
            method=config.method,
            url=config.url,
            headers=config.headers,
            body=config.body,
            response_path=config.response.answer,
            **pointers,
        )

    def _sent(self, question: str) -> str:
        return question

    def _request(self, question: str) -> HttpRequest:
        config = self._http
        named = {
            name: value if isinstance(value, str) else value.prefix + self._transport.resolve(value.env)
            for name, value in config.headers.items()
        }
        content_type = next((value for name, value in named.items() if name.lower() == "content-type"), JSON_TYPE)
        body = render_body(config.body, question, content_type)
        given = {"Accept": JSON_TYPE, **({} if body is None else {"Content-Type": content_type})}
        names = {name.lower() for name in named}
        headers = {**{name: value for name, value in given.items() if name.lower() not in names}, **named}
        url = config.url.replace(QUESTION, urllib.parse.quote(question, safe=""))
        return HttpRequest(config.method, url, headers, body)

    def _read(self, document: Any) -> Answer:
        return read_answer(document, self._http.response)


def render_body(template: JsonValue, question: str, content_type: str) -> bytes | None:
    """The body with the question in the place of `{question}`.

    A template that is no text is JSON, and the question goes into its texts. In a text it is escaped as the content
    type asks for: form fields are percent-encoded, plain text and XML are left to the template, all else is JSON.
    """
    if template is None:
        return None
    if not isinstance(template, str):
        return json.dumps(_filled(template, question), ensure_ascii=False).encode("utf-8", "surrogatepass")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        written = urllib.parse.quote_plus(question)
    elif kind.startswith("text/"):
        written = question
    else:
        written = json.dumps(question, ensure_ascii=False)[1:-1]
    return template.replace(QUESTION, written).encode("utf-8", "surrogatepass")


def _filled(value: JsonValue, question: str) -> JsonValue:
    if isinstance(value, str):
        return value.replace(QUESTION, question)
    if isinstance(value, list):
        return [_filled(item, question) for item in value]
    if isinstance(value, dict):
        return {name: _filled(item, question) for name, item in value.items()}
    return value
