"""Sentence borders, found by the sentencex library, an extension module without published types."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

LANGUAGE = "en"
"""Whose abbreviations are known; borders at . ! ? and their full-width forms are found in any language."""


def split_sentences(text: str) -> list[str]:
    """The sentences of `text` in order, without surrounding white space; blank ones are left out."""
    sentencex: Any = import_module("sentencex")
    borders: list[dict[str, int]] = sentencex.get_sentence_boundaries(LANGUAGE, text)
    spans = [text[border["start_index"] : border["end_index"]].strip() for border in borders]
    return [span for span in spans if span]


def library_version() -> str:
    """Version of the library: another one may find other borders."""
    return version("sentencex")
