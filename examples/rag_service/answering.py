"""What the service knows: answers from a corpus, and vectors of texts; with the real model, or without one."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections import Counter
from pathlib import Path
from typing import Protocol

from rag_eval_assets.dataset.corpus import Document, DocumentSet, load_corpus
from rag_eval_assets.dataset.rows import open_rows
from rag_eval_assets.home import Home
from rag_eval_assets.progress import SILENT
from rag_eval_assets.suite.load import load_suite
from rag_eval_assets.suite.targets import Chunking, EmbeddedTarget
from rag_eval_assets.targets.base import Answer, Passage
from rag_eval_assets.targets.chunking import chunk_document
from rag_eval_assets.weights.resolve import resolve

LIGHT_DIMENSIONS = 64


class Knowledge(Protocol):
    """Answers questions and embeds texts."""

    embedding_model: str

    async def answer(self, question: str) -> Answer:
        """The answer with its passages, best first."""
        ...

    def embed(self, texts: list[str]) -> list[list[float]]:
        """A vector of float32 values per text."""
        ...


def read_corpus(path: Path | None) -> DocumentSet:
    """The packaged sample, or the documents (id, text, perhaps title) of a parquet, jsonl or csv file."""
    if path is None:
        return load_corpus(load_suite("embedded"))
    rows = [row.values for row in open_rows(path).read(("id", "text"))]
    return DocumentSet(tuple(Document(str(row["id"]), None, str(row["text"])) for row in rows))


class Embedded:
    """The embedded target of the package, with all-MiniLM-L6-v2."""

    embedding_model = "all-MiniLM-L6-v2"

    def __init__(self, documents: DocumentSet) -> None:
        from rag_eval_assets.scoring.encoders import load_encoder
        from rag_eval_assets.targets.embedded import EmbeddedPipeline

        model = resolve(self.embedding_model)
        self._encoder = load_encoder(model)
        config = EmbeddedTarget(type="embedded")
        self._pipeline = EmbeddedPipeline(config, documents, model, Home.from_environment().cache)
        asyncio.run(self._pipeline.prepare(SILENT))

    async def answer(self, question: str) -> Answer:
        """As the embedded target answers."""
        return await self._pipeline.answer(question, trial=0)

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Sentence embeddings."""
        return [[float(value) for value in vector] for vector in self._encoder.encode(texts)]


class Light:
    """Words instead of a model, so that the service starts at once: the passage that shares the rarest words."""

    embedding_model = "light"

    def __init__(self, documents: DocumentSet) -> None:
        chunking = Chunking.model_validate({})
        self._chunks = [chunk for document in documents.documents for chunk in chunk_document(document, chunking)]
        self._words = [set(_words(chunk.text)) for chunk in self._chunks]
        self._rarity = Counter(word for words in self._words for word in words)

    async def answer(self, question: str) -> Answer:
        """The best passage's sentence that shares most words with the question."""
        asked = set(_words(question))
        scores = [sum(1 / self._rarity[word] for word in asked & words) for words in self._words]
        best = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:5]
        if not best:
            return Answer(None, (), "light")
        found = [self._chunks[place] for place in best]
        sentences = found[0].sentences
        text = max(sentences, key=lambda sentence: len(asked & set(_words(sentence))))
        passages = tuple(
            Passage(chunk.id, chunk.document_id, chunk.text, scores[place])
            for chunk, place in zip(found, best, strict=True)
        )
        return Answer(text, passages, "light")

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Unit vectors of hashed words."""
        return [_hashed(text) for text in texts]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _hashed(text: str) -> list[float]:
    vector = [0.0] * LIGHT_DIMENSIONS
    for word in _words(text):
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % LIGHT_DIMENSIONS] += 1.0 if digest[1] % 2 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
