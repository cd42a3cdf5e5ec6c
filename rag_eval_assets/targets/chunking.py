"""Cutting documents into passages of whole sentences that overlap at sentence borders."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass

from rag_eval_assets.dataset.corpus import Document
from rag_eval_assets.suite.targets import Chunking
from rag_eval_assets.targets.sentences import split_sentences

CODE_VERSION = "1"
"""Part of the index's fingerprint: raised whenever the same document would be cut otherwise."""


@dataclass(frozen=True)
class Chunk:
    """A passage of a document.

    Attributes:
        id: `<document id>#<0-based number of the passage>`.
        document_id: id of the document.
        sentences: its sentences in order, without surrounding white space.
    """

    id: str
    document_id: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The passage as one text."""
        return " ".join(self.sentences)


def chunk_document(document: Document, chunking: Chunking) -> list[Chunk]:
    """Cut a document into passages of at most `max_words` words.

    Every passage begins and ends at a sentence border and repeats the last `overlap_sentences` sentences of the one
    before, as far as they leave room for something new. A sentence longer than `max_words` is cut between words. A
    document without a word gives no passage.
    """
    pieces = [piece for s in split_sentences(document.text) for piece in _cut_long(s, chunking.max_words)]
    return [
        Chunk(f"{document.id}#{number}", document.id, tuple(sentences))
        for number, sentences in enumerate(_pack(pieces, chunking))
    ]


def _pack(pieces: list[str], chunking: Chunking) -> Generator[list[str]]:
    current: list[str] = []
    words = 0
    for piece in pieces:
        length = _count_words(piece)
        if current and words + length > chunking.max_words:
            yield current
            current = _overlap(current, chunking, room=chunking.max_words - length)
            words = sum(map(_count_words, current))
        current.append(piece)
        words += length
    if current:
        yield current


def _overlap(sentences: list[str], chunking: Chunking, room: int) -> list[str]:
    kept: list[str] = []
    last = sentences[-chunking.overlap_sentences :] if chunking.overlap_sentences else []
    for sentence in reversed(last):
        room -= _count_words(sentence)
        if room < 0:
            break
        kept.insert(0, sentence)
    return kept


def _cut_long(sentence: str, max_words: int) -> list[str]:
    words = list(re.finditer(r"\S+", sentence))
    if len(words) <= max_words:
        return [sentence]
    groups = [words[start : start + max_words] for start in range(0, len(words), max_words)]
    return [sentence[group[0].start() : group[-1].end()] for group in groups]


def _count_words(text: str) -> int:
    return len(text.split())
