"""A small RAG service: `/query`, two endpoints of OpenAI's API, and the version of its corpus."""

from __future__ import annotations

import base64
import dataclasses
import struct
import time
from typing import Any, Literal

from answering import Knowledge
from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse
from faults import Stats
from pydantic import BaseModel

from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.targets.base import Answer


class Query(BaseModel):
    """A question."""

    question: str
    top_k: int = 5


class Message(BaseModel):
    """One message of a chat."""

    role: str
    content: str


class Chat(BaseModel):
    """A request for a chat completion; further parameters are ignored."""

    model: str
    messages: list[Message]


class Embeddings(BaseModel):
    """A request for embeddings."""

    input: str | list[str]
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def build(knowledge: Knowledge, documents: DocumentSet, stats: Stats, *, reverse_embeddings: bool = False) -> FastAPI:
    """The application.

    Args:
        knowledge: answers and embeds.
        documents: what it answers from.
        stats: shown at `/stats`.
        reverse_embeddings: return batches last text first; clients must go by `index`.
    """
    app = FastAPI(title="RAG service")

    @app.post("/query")
    async def query(asked: Query) -> JSONResponse:
        answer = await knowledge.answer(asked.question)
        passages = [dataclasses.asdict(passage) for passage in (answer.passages or ())[: asked.top_k]]
        usage = _usage(asked.question, answer)
        # A response as it is, since what FastAPI does to a dict costs more than all the rest of a light answer.
        return JSONResponse(
            {"answer": answer.text, "passages": passages, "generator": answer.generator, "usage": usage}
        )

    @app.post("/v1/chat/completions")
    async def chat(asked: Chat) -> dict[str, Any]:
        questions = [message.content for message in asked.messages if message.role == "user"]
        if not questions:
            raise HTTPException(400, "no message of a user")
        answer = await knowledge.answer(questions[-1])
        usage = _usage(questions[-1], answer)
        return {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": answer.generator,
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer.text}}
            ],
            "usage": {
                "prompt_tokens": usage["input_tokens"],
                "completion_tokens": usage["output_tokens"],
                "total_tokens": sum(usage.values()),
            },
            "passages": [dataclasses.asdict(passage) for passage in answer.passages or ()],
        }

    @app.post("/v1/embeddings")
    async def embeddings(asked: Embeddings) -> dict[str, Any]:
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        if asked.model != knowledge.embedding_model:
            raise HTTPException(
                404, f"model {asked.model!r} does not exist; this service has one: {knowledge.embedding_model!r}"
            )
        if not texts or not all(text.strip() for text in texts):
            raise HTTPException(400, "'input' is empty")
        vectors = [vector[: asked.dimensions] for vector in knowledge.embed(texts)]
        data = [
            {"object": "embedding", "index": place, "embedding": _encoded(vector, asked.encoding_format)}
            for place, vector in enumerate(vectors)
        ]
        tokens = sum(len(text.split()) for text in texts)
        return {
            "object": "list",
            "data": data[::-1] if reverse_embeddings else data,
            "model": asked.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    @app.get("/corpus/version")
    async def corpus_version() -> dict[str, Any]:
        return {"version": documents.fingerprint, "documents": len(documents.documents)}

    @app.get("/stats")
    async def counted() -> dict[str, Any]:
        return stats.to_json()

    return app


def _usage(question: str, answer: Answer) -> dict[str, int]:
    """Words for tokens: this service has no generator whose tokens could be counted."""
    return {"input_tokens": len(question.split()), "output_tokens": len((answer.text or "").split())}


def _encoded(vector: list[float], form: str) -> list[float] | str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if form == "base64" else vector
