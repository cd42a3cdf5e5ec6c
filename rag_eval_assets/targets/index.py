"""The embedded target's dense index: every passage of the corpus with its sentence embedding, and exact top-k search.

The vectors are made once per corpus, model and cutting, and kept as one file in the cache: a SHA-256, then
NumPy's `.npy` format. They are written block by block and mapped, not read, so that a corpus may be larger than memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.atomic import replace_file
from rag_eval_assets.suite.targets import Chunking
from rag_eval_assets.targets import chunking as chunking_module
from rag_eval_assets.targets.chunking import Chunk
from rag_eval_assets.targets.sentences import library_version

INDEX_VERSION = "1"
"""Raised whenever the file's layout or the way of embedding changes."""

EMBEDDED_AT_ONCE = 256
"""Passages that are embedded between two reports of progress, and lost by an interrupt: a second or two of work."""

_SEARCHED_AT_ONCE = 1024
"""Passages that are compared with several questions before the next ones are looked at: they stay in the processor's
cache meanwhile (1.5 MB at 384 dimensions)."""

_MOST_SCORES = 4_000_000
"""Scores that are in memory together, 16 MB; those of one question at least."""

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
        return self.search_many(query[np.newaxis], k)[0]

    def search_many(self, queries: Vectors, k: int) -> list[list[tuple[Chunk, float]]]:
        """What `search` gives for each row of `queries`, to the last bit, in less time than one by one."""
        at_once = max(1, _MOST_SCORES // max(len(self.chunks), 1))
        return [
            [(self.chunks[row], score) for row, score in found]
            for start in range(0, len(queries), at_once)
            for found in _nearest(self.vectors, queries[start : start + at_once], k)
        ]


def _nearest(vectors: Vectors, queries: Vectors, k: int) -> list[list[tuple[int, float]]]:
    scores = np.empty((len(queries), len(vectors)), dtype=np.float32)
    blocks = range(0, len(vectors), _SEARCHED_AT_ONCE)
    _in_threads(partial(_score_block, vectors, queries, scores), blocks, scores.size)
    return _in_threads(partial(_best, k=k), scores, scores.size)


def _score_block(vectors: Vectors, queries: Vectors, scores: Vectors, start: int) -> None:
    block = vectors[start : start + _SEARCHED_AT_ONCE]
    # Row by row: a matrix product gives equal rows scores that differ in the last bit, depending on their place.
    np.vecdot(queries[:, np.newaxis], block[np.newaxis], out=scores[:, start : start + _SEARCHED_AT_ONCE])


def _best(scores: Vectors, k: int) -> list[tuple[int, float]]:
    """Rows and scores of the `k` highest scores; of equal ones the first rows."""
    k = min(k, len(scores))
    if k == 0:
        return []
    # All rows that score as the k-th best does, or better: a few, however long the corpus is, unless many are equal.
    rows = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    best = rows[np.argsort(-scores[rows], kind="stable")][:k]
    return [(int(row), float(scores[row])) for row in best]


def _in_threads(work: Callable[[Any], Any], items: Sequence[Any] | Vectors, size: int) -> list[Any]:
    """`work` of each item, in order; by all cores where there is enough to do."""
    return list(_pool().map(work, items)) if size > 2 * _SEARCHED_AT_ONCE else [work(item) for item in items]


@cache
def _pool() -> ThreadPoolExecutor:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(cores, thread_name_prefix="rag-eval-search")


if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads, and would wait for them for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)


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
    """The index kept in `file`, or a new one that is then kept there; an unreadable file is built anew.

    The file is mapped: it may be deleted or replaced while the index is in use, but not written into.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    vectors = _map_vectors(file, len(chunks))
    if vectors is not None:
        advance(len(chunks))
        return Index(chunks, vectors)
    replace_file(file, partial(_build, _embed(chunks, encoder, advance), len(chunks)))
    vectors = _map_vectors(file, len(chunks))
    if vectors is None:
        raise InfrastructureError(f"{file.name!r} was written and cannot be read back", fix="Check the disk")
    return Index(chunks, vectors)


def _embed(chunks: Sequence[Chunk], encoder: Encoder, advance: Callable[[int], None]) -> Generator[Vectors]:
    for start in range(0, len(chunks), EMBEDDED_AT_ONCE):
        block = chunks[start : start + EMBEDDED_AT_ONCE]
        yield encoder.encode([chunk.text for chunk in block])
        advance(len(block))


def _build(blocks: Generator[Vectors], rows: int, temporary: Path) -> None:
    """Write the digest and the `.npy` format; no more than one block is in memory."""
    with temporary.open("w+b") as opened:
        opened.write(bytes(_DIGEST_BYTES))
        dimensions = 0
        for block in blocks:
            if not dimensions:
                dimensions = block.shape[1]
                _write_header(opened, (rows, dimensions))
            opened.write(np.ascontiguousarray(block, dtype="<f4").data)
        if not dimensions:
            _write_header(opened, (0, 1))
        opened.seek(_DIGEST_BYTES)
        digest = hashlib.file_digest(opened, "sha256").digest()
        opened.seek(0)
        opened.write(digest)


def _write_header(opened: BinaryIO, shape: tuple[int, int]) -> None:
    np.lib.format.write_array_header_1_0(opened, {"descr": "<f4", "fortran_order": False, "shape": shape})


def _map_vectors(file: Path, rows: int) -> Vectors | None:
    try:
        with file.open("rb") as opened:
            # Read through once and not kept.
            digest = opened.read(_DIGEST_BYTES)
            if hashlib.file_digest(opened, "sha256").digest() != digest:
                return None
            opened.seek(_DIGEST_BYTES)
            np.lib.format.read_magic(opened)
            shape, _, dtype = np.lib.format.read_array_header_1_0(opened)
            if len(shape) != 2 or shape[0] != rows or dtype != np.float32:
                return None
            if rows == 0:
                return np.zeros(shape, dtype=np.float32)
            mapped: Vectors = np.memmap(opened, dtype=np.float32, mode="r", offset=opened.tell(), shape=shape)
            return np.asarray(mapped)
    except (OSError, ValueError, EOFError):
        return None
