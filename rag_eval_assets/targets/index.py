"""The embedded target's dense index: every passage of the corpus with its sentence embedding, and exact top-k search.

The vectors are made once per corpus, model and cutting, and kept as one file in the cache: a SHA-256, then
NumPy's `.npy` format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.storage.atomic import replace_file
from rag_eval_assets.suite.targets import Chunking
from rag_eval_assets.targets import chunking as chunking_module
from rag_eval_assets.targets.chunking import Chunk
from rag_eval_assets.targets.sentences import library_version

INDEX_VERSION = "1"
"""Raised whenever the file's layout or the way of embedding changes."""

_BLOCK = 16
"""Passages that are embedded between two reports of progress."""

_DIGEST_BYTES = 32
"""Of the SHA-256 before the vectors: damage to the file would otherwise only show as worse answers."""

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into unit vectors, each text alone, so that a vector depends on nothing but its text."""

    def encode(self, texts: list[str]) -> Vectors:
        """Array of shape (len(texts), dimensions)."""
        ...


@dataclass(frozen=True)
class Index:
    """Passages and their vectors, row by row.

    Attributes:
        chunks: the passages, in corpus order.
        vectors: shape (len(chunks), dimensions), each row of unit length.
    """

    chunks: tuple[Chunk, ...]
    vectors: Vectors

    def search(self, query: Vectors, k: int) -> list[tuple[Chunk, float]]:
        """The `k` passages nearest to `query` (shape (dimensions,)) by cosine, best first; ties in corpus order."""
        # Row by row: a matrix product gives equal rows scores that differ in the last bit, depending on their place.
        scores = np.vecdot(self.vectors, query)
        best = np.lexsort((np.arange(len(scores)), -scores))[:k]
        return [(self.chunks[int(row)], float(scores[int(row)])) for row in best]


def index_fingerprint(documents: DocumentSet, chunking: Chunking, model: dict[str, Any]) -> str:
    """Hash of all that an index depends on: documents, cutting, model, and the versions of the code that makes it."""
    return content_hash(
        {
            "corpus": documents.fingerprint,
            "chunking": [chunking.model_dump(), chunking_module.CODE_VERSION, library_version()],
            "model": model,
            "version": INDEX_VERSION,
        }
    )


def load_or_build_index(
    file: Path, chunks: tuple[Chunk, ...], encoder: Encoder, advance: Callable[[int], None]
) -> Index:
    """The index kept in `file`, or a new one that is then kept there; an unreadable file is built anew."""
    vectors = _read_vectors(file, len(chunks))
    if vectors is None:
        vectors = _embed(chunks, encoder, advance)
        _write_vectors(file, vectors)
    else:
        advance(len(chunks))
    return Index(chunks, vectors)


def _embed(chunks: tuple[Chunk, ...], encoder: Encoder, advance: Callable[[int], None]) -> Vectors:
    blocks: list[Vectors] = []
    for start in range(0, len(chunks), _BLOCK):
        block = chunks[start : start + _BLOCK]
        blocks.append(encoder.encode([chunk.text for chunk in block]))
        advance(len(block))
    return np.concatenate(blocks) if blocks else np.zeros((0, 1), dtype=np.float32)


def _write_vectors(file: Path, vectors: Vectors) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("w+b") as opened:
            opened.write(bytes(_DIGEST_BYTES))
            np.save(opened, vectors, allow_pickle=False)
            opened.seek(_DIGEST_BYTES)
            digest = hashlib.file_digest(opened, "sha256").digest()
            opened.seek(0)
            opened.write(digest)

    replace_file(file, write)


def _read_vectors(file: Path, rows: int) -> Vectors | None:
    try:
        with file.open("rb") as opened:
            digest = opened.read(_DIGEST_BYTES)
            if hashlib.file_digest(opened, "sha256").digest() != digest:
                return None
            opened.seek(_DIGEST_BYTES)
            vectors: Vectors = np.load(opened, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vectors if len(vectors) == rows else None
