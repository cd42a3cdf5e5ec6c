"""The `openai-compatible` target: OpenAI's chat completions, asked once per question, without streaming."""

from __future__ import annotations

import json
from typing import Any, cast

from rag_eval_assets.recording.channel import Channel
from rag_eval_assets.recording.request import chat_identity
from rag_eval_assets.recording.transport import HttpRequest, endpoint
from rag_eval_assets.suite.targets import QUESTION, OpenAICompatibleTarget
from rag_eval_assets.targets.base import Answer
from rag_eval_assets.targets.pointers import ShapeError, read_count, read_name, read_passages, resolve
from rag_eval_assets.targets.remote import RemotePipeline

CONTENT = "/choices/0/message/content"


class ChatPipeline(RemotePipeline):
    """A chat model that is asked as `config` describes; see the module."""

    def __init__(self, config: OpenAICompatibleTarget, channel: Channel, concurrency: int) -> None:
        self._chat = config
        super().__init__(config, channel, concurrency)

    def _call_identity(self) -> dict[str, Any]:
        config = self._chat
        made = chat_identity(config.url, config.model, system=config.system, params=config.params)
        if config.passages is not None:
            made["passages"] = config.passages.model_dump(mode="json", exclude_unset=True)
        return made

    def _sent(self, question: str) -> str:
        return self._chat.prompt.replace(QUESTION, question)

    def _request(self, question: str) -> HttpRequest:
        config = self._chat
        system = [] if config.system is None else [{"role": "system", "content": config.system}]
        messages = [*system, {"role": "user", "content": self._sent(question)}]
        body = {"model": config.model, "messages": messages, **config.params}
        headers = {"Content-Type": "application/json", **self._transport.bearer(config.api_key_env)}
        return HttpRequest("POST", endpoint(config.url, "chat/completions"), headers, json.dumps(body).encode("ascii"))

    def _read(self, document: Any) -> Answer:
        config = self._chat
        return Answer(
            text=_text_of(resolve(document, CONTENT)),
            passages=None if config.passages is None else read_passages(document, config.passages),
            generator=read_name(document, "/model") or config.generator or config.model,
            input_tokens=read_count(document, "/usage/prompt_tokens"),
            output_tokens=read_count(document, "/usage/completion_tokens"),
        )


def _text_of(content: Any) -> str | None:
    """The text of a message: one text, null, or a list of parts, of which the texts count.

    Raises:
        ShapeError: it is something else.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ShapeError(f"has no text at {CONTENT!r}")
    parts = [cast("dict[str, Any]", part) for part in cast("list[Any]", content) if isinstance(part, dict)]
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
