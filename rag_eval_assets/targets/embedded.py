"""The embedded target: dense retrieval over the corpus and an extractive answer, inside this process.

It exists so that the whole lineage can be run and understood on a machine without network or keys. It quotes the
sentences nearest to the question and so cannot reason, combine or refuse; its retriever may share its model with the
scorers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.progress import Reporter, stage
from rag_eval_assets.scoring.cache import open_stores
from rag_eval_assets.scoring.encoder.fingerprint import ENGINE_VERSION
from rag_eval_assets.suite.targets import EmbeddedTarget
from rag_eval_assets.targets.base import Answer, Passage
from rag_eval_assets.targets.chunking import Chunk, chunk_document
from rag_eval_assets.targets.index import Encoder, Index, Vectors, index_fingerprint, load_or_build_index
from rag_eval_assets.targets.planted import plant_in_answer, plant_in_index
from rag_eval_assets.weights.resolve import ResolvedModel

CODE_VERSION = "2"
"""Part of the identity: raised whenever the same index and question would give another answer."""

SENTENCE_MARGIN = 0.1
"""A further sentence is quoted only where its cosine to the question is at most this far below the best one's."""

KEPT_SENTENCES = 20_000
"""Sentence vectors that are kept per model, the newest: 30 MB at 384 dimensions."""

_SENTENCES: dict[str, dict[str, Vectors]] = {}
"""Hash of a model's weights to sentence to vector. A vector depends on nothing else, so all targets share them."""


class EmbeddedPipeline:
    """A retrieval pipeline over `documents`; see the module."""

    def __init__(self, config: EmbeddedTarget, documents: DocumentSet, model: ResolvedModel, cache: Path) -> None:
        self._config = config
        self._documents = documents
        self._model = model
        pinned = {"id": model.pin.id, "weights_sha256": model.pin.weights_sha256, "engine": ENGINE_VERSION}
        self._fingerprint = index_fingerprint(documents, config.chunking, pinned)
        self._file = cache / "index" / f"{self._fingerprint}.vectors"
        self._stores = open_stores(cache / "scores")  # the scorers' own: they meet the same texts
        self._index: Index | None = None
        self._encoder: Encoder | None = None
        self._sentences = _SENTENCES.setdefault(model.pin.weights_sha256, {})

    def identity(self) -> dict[str, Any]:
        """Index, settings and code that the answers depend on."""
        return {
            "type": "embedded",
            "index": self._fingerprint,
            "top_k": self._config.top_k,
            "answer_sentences": self._config.answer_sentences,
            "generator": self._config.generator,
            "planted_fault": self._config.planted_fault,
            "code": CODE_VERSION,
        }

    async def prepare(self, reporter: Reporter) -> None:
        """Load the model and the index, building the index where this corpus has none yet."""
        from rag_eval_assets.scoring.encoders import load_encoder

        encoder = load_encoder(self._model, stores=self._stores)
        documents, chunking = self._documents.documents, self._config.chunking
        chunks = tuple(chunk for document in documents for chunk in chunk_document(document, chunking))
        with stage(reporter, "index", len(chunks), "passages") as running:
            index = load_or_build_index(self._file, chunks, encoder, running.advance)
        self._index = plant_in_index(self._config.planted_fault, index)
        self._encoder = encoder

    async def answer(self, question: str, trial: int) -> Answer:
        """Retrieve `top_k` passages and quote the sentences nearest to the question; equal for every trial."""
        del trial
        if self._index is None or self._encoder is None:
            raise RuntimeError("prepare() was not called")
        query = self._encoder.encode([question])[0]
        found = self._index.search(query, self._config.top_k)
        passages = tuple(Passage(chunk.id, chunk.document_id, chunk.text, score) for chunk, score in found)
        generator = self._config.generator or f"extractive/{self._model.pin.id}"
        text = plant_in_answer(self._config.planted_fault, self._quote([chunk for chunk, _ in found], query))
        return Answer(text, passages, generator)

    async def close(self) -> None:
        """Nothing to release."""

    def _quote(self, chunks: list[Chunk], query: Vectors) -> str | None:
        """The sentences nearest to the question, in the order in which retrieval brought them up."""
        sentences = list(dict.fromkeys(sentence for chunk in chunks for sentence in chunk.sentences))
        if not sentences:
            return None
        scores = [float(vector @ query) for vector in self._vectors(sentences)]
        best = sorted(range(len(sentences)), key=lambda place: (-scores[place], place))
        floor = scores[best[0]] - SENTENCE_MARGIN
        chosen = [place for place in best[: self._config.answer_sentences] if scores[place] >= floor]
        return " ".join(sentences[place] for place in sorted(chosen))

    def _vectors(self, sentences: list[str]) -> list[Vectors]:
        """The sentences' vectors; sentences recur between questions and targets, so each is encoded once."""
        assert self._encoder is not None
        new = [sentence for sentence in sentences if sentence not in self._sentences]
        if new:
            self._sentences.update(zip(new, self._encoder.encode(new), strict=True))
        vectors = [self._sentences[sentence] for sentence in sentences]
        while len(self._sentences) > KEPT_SENTENCES:
            del self._sentences[next(iter(self._sentences))]
        return vectors
