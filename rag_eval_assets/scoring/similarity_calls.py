"""Calls of an OpenAI-compatible `/embeddings`: what is sent, and what an answer must look like."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.cassette.vectors import from_base64, pack
from rag_eval_assets.recording.recorded import NOTES
from rag_eval_assets.recording.retries import RetryPolicy
from rag_eval_assets.recording.transport import HttpRequest, HttpResponse, Transport, endpoint

_TOO_MUCH_AT_ONCE = frozenset({"400", "413", "422"})
"""Refusals that may be about one text of a batch, or about their number."""


@dataclass
class EmbeddingsClient:
    """Embeds texts with one model of one service; owns no connection, which its transport does.

    Attributes:
        transport: sends the requests.
        url, model, dimensions, api_key_env: as in the suite.
        policy: of each request.
        requests: how many were made.
    """

    transport: Transport
    url: str
    model: str
    dimensions: int | None
    api_key_env: str | None
    policy: RetryPolicy
    requests: int = field(default=0, init=False)

    async def embed(self, texts: Sequence[str]) -> list[dict[str, Any] | Exception]:
        """An output for each text: `vector` (packed), and as notes `tokens` and `model` where the service says them.

        A batch that is refused is sent again text by text, so that a bad text costs nobody else the score.

        Raises:
            ConfigurationError: the variable with the key is not set.
        """
        try:
            return list(await self._request(texts))
        except CallError as error:
            if len(texts) > 1 and error.kind in _TOO_MUCH_AT_ONCE:
                return [outcome for text in texts for outcome in await self.embed([text])]
            return [error for _ in texts]

    async def _request(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        headers = {"Content-Type": "application/json", **self.transport.bearer(self.api_key_env)}
        content: dict[str, Any] = {"input": list(texts), "model": self.model}
        if self.dimensions is not None:
            content["dimensions"] = self.dimensions
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        self.requests += 1
        request = HttpRequest("POST", endpoint(self.url, "embeddings"), headers, body)
        return read_answer(await self.transport.send(request, self.policy), texts)


def read_answer(response: HttpResponse, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The outputs in an answer, in the order of `texts`.

    Of a single text the answer's first item counts, whatever else it holds; several must be as many as the texts.

    Raises:
        CallError: `bad_response`, naming what is missing.
    """
    document: Any = response.json()
    items: Any = cast("dict[str, Any]", document).get("data") if isinstance(document, dict) else None
    if not isinstance(items, list) or not items:
        raise response.bad("has no list of numbers at data[0].embedding")
    ordered = _in_order(cast("list[Any]", items), len(texts), response)
    tokens = _split(_tokens(document), texts)
    model = cast("dict[str, Any]", document).get("model")
    outputs: list[dict[str, Any]] = []
    for place, item in enumerate(ordered):
        said = {"tokens": tokens[place], "model": model if isinstance(model, str) else None}
        notes = {name: value for name, value in said.items() if value is not None}
        outputs.append({"vector": _vector(item, place, response), **({NOTES: notes} if notes else {})})
    return outputs


def _in_order(items: list[Any], count: int, response: HttpResponse) -> list[Any]:
    if count == 1:
        return items[:1]
    if len(items) != count:
        raise response.bad(f"holds {len(items)} embeddings for {count} texts")
    places = [cast("dict[str, Any]", item).get("index") if isinstance(item, dict) else None for item in items]
    if all(place is None for place in places):
        return items
    if sorted(place for place in places if type(place) is int) != list(range(count)):
        raise response.bad(f"numbers its {count} embeddings {places!r} at data[].index")
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda pair: cast("int", pair[0]))]


def _vector(item: Any, place: int, response: HttpResponse) -> dict[str, Any]:
    embedding: Any = cast("dict[str, Any]", item).get("embedding") if isinstance(item, dict) else None
    try:
        if isinstance(embedding, str):
            return pack(from_base64(embedding))
        if isinstance(embedding, list) and all(type(n) in (int, float) for n in cast("list[Any]", embedding)):
            return pack(cast("list[float]", embedding))
    except (ValueError, OverflowError) as error:
        raise response.bad(f"has no usable numbers at data[{place}].embedding ({error})") from error
    raise response.bad(f"has no list of numbers at data[{place}].embedding")


def _tokens(document: Any) -> int | None:
    usage: Any = cast("dict[str, Any]", document).get("usage")
    if not isinstance(usage, dict):
        return None
    counts = cast("dict[str, Any]", usage)
    found: Any = counts.get("prompt_tokens", counts.get("total_tokens"))
    return found if type(found) is int and found >= 0 else None


def _split(total: int | None, texts: Sequence[str]) -> list[int | None]:
    """The tokens of a batch shared out by the texts' bytes, since the service gives their sum alone; the sum stays."""
    if total is None:
        return [None for _ in texts]
    sizes = [max(1, len(text.encode("utf-8"))) for text in texts]
    ends = [sum(sizes[: place + 1]) * total // sum(sizes) for place in range(len(sizes))]
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]
