"""Decides which retrieved passages hold the ground-truth context of one example, by document id or by text.

Texts are compared after folding: Unicode NFKC, case, white space, and punctuation at the edges of words (so that a
chunker that cuts at a full stop still matches). Chinese and Japanese have no spaces; there each character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.status import MatchStatus

MatchBy = Literal["auto", "document_id", "text"]
MatchMethod = Literal["document_id", "text", "mixed"]

# Begins and ends with a letter or digit; what stands between belongs to it ("don't", "3.5", "state-of-the-art").
_WORD = re.compile(r"\w+(?:[^\w\s]+\w+)*")
# Scripts without spaces between words, in which a character is about a word: kana and Han ideographs.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True)
class MatchSettings:
    """When a passage counts as the context.

    Attributes:
        k: `top_k_match` is rank <= k.
        match_by: `auto` compares document ids where passage and example both have one, else texts; the others force
            one of the two.
        min_words: a passage of fewer words never matches by text (unless the context itself is as short).
        max_length_ratio: nor does a passage longer than this many contexts, in folded characters.
        ngram: length of the word n-grams that are compared.
        ngram_threshold: share of a passage's n-grams found in the context from which on it matches, in (0, 1].

    Raises:
        ConfigurationError: a value is out of its range.
    """

    k: int = 5
    match_by: MatchBy = "auto"
    min_words: int = 8
    max_length_ratio: float = 4.0
    ngram: int = 5
    ngram_threshold: float = 0.5

    def __post_init__(self) -> None:
        checks = {
            "k": (self.k >= 1, "an integer from 1"),
            "match_by": (self.match_by in ("auto", "document_id", "text"), "auto, document_id or text"),
            "min_words": (self.min_words >= 1, "an integer from 1"),
            "max_length_ratio": (0 < self.max_length_ratio < float("inf"), "a number above 0"),
            "ngram": (self.ngram >= 1, "an integer from 1"),
            "ngram_threshold": (0 < self.ngram_threshold <= 1, "a number above 0 and at most 1"),
        }
        for name, (good, wanted) in checks.items():
            if not good:
                raise ConfigurationError(f"retrieval.{name} is {getattr(self, name)!r}", fix=f"Give {wanted}")


@dataclass(frozen=True)
class Match:
    """The retrieval judgement of one example.

    Attributes:
        status: `judged`, or why not.
        method: how the passages were compared; None where none was.
        rank: 1-based rank of the best matching passage; None where none matches.
        top_k_match: whether rank <= k; None where not judged.
        matched: one value per passage, best first; empty where not judged.
    """

    status: MatchStatus
    method: MatchMethod | None
    rank: int | None
    top_k_match: bool | None
    matched: list[bool]


class FoldedText:
    """A text made comparable; folded form, words and n-grams are computed once, when first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ngrams: dict[int, set[tuple[str, ...]]] = {}

    @cached_property
    def folded(self) -> str:
        """The text after NFKC and case folding, with single spaces."""
        return _fold(self._text)

    def is_longer_than(self, limit: float) -> bool:
        """Whether the folded text has more than `limit` characters; a giant text is told by its beginning."""
        enough = int(2 * limit) + 64
        # The end of a cut text may fold otherwise (a letter loses its accent), by far fewer than 8 characters.
        if len(self._text) > enough and len(_fold(self._text[:enough])) > limit + 8:
            return True
        return len(self.folded) > limit

    @cached_property
    def words(self) -> list[str]:
        """The words in order."""
        text = self.folded
        if not text.isascii():
            text = _UNSPACED.sub(r" \g<0> ", text)
        return _WORD.findall(text)

    @cached_property
    def line(self) -> str:
        """The words with one space between them."""
        return " ".join(self.words)

    def ngrams(self, n: int) -> list[tuple[str, ...]]:
        """The word n-grams in order, repeated ones included."""
        words = self.words
        return list(zip(*(words[start:] for start in range(n)), strict=False))

    def ngram_set(self, n: int) -> set[tuple[str, ...]]:
        """The distinct word n-grams; kept, since every passage asks the same context."""
        if n not in self._ngrams:
            self._ngrams[n] = set(self.ngrams(n))
        return self._ngrams[n]


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_matches(context: FoldedText, passage: FoldedText, settings: MatchSettings) -> bool:
    """Whether a passage is (part of) the context, or the context is part of it.

    - Equal words match, whatever their number.
    - A passage longer than `max_length_ratio` contexts never matches: it could hold the whole corpus.
    - A passage that holds the whole context, from word border to word border, matches if it has `min_words` words, or
      if the context has fewer than that itself (no passage could then be held to more).
    - Else a passage needs `min_words` words, and matches where it stands in the context (its first and last word may
      be cut, as chunkers by characters do) or where enough of its n-grams do.
    """
    if passage.is_longer_than(settings.max_length_ratio * len(context.folded)):
        return False
    if not context.words or not passage.words:
        return False
    long_enough = len(passage.words) >= settings.min_words
    if len(context.words) < settings.min_words or not long_enough:
        holds_context = long_enough or len(context.words) < settings.min_words
        return context.line == passage.line or (holds_context and _holds(passage, context))
    return (
        _holds(passage, context)
        or passage.line in context.line
        or _shared_ngrams(context, passage, settings.ngram) >= settings.ngram_threshold
    )


def _holds(passage: FoldedText, context: FoldedText) -> bool:
    return f" {context.line} " in f" {passage.line} "


def _shared_ngrams(context: FoldedText, passage: FoldedText, n: int) -> float:
    """Share of the passage's n-grams that the context has; 0 where the passage is too short to have one."""
    grams = passage.ngrams(n)
    known = context.ngram_set(n)
    return sum(gram in known for gram in grams) / len(grams) if grams else 0.0


def match_passages(
    context: str | FoldedText | None,
    context_id: str | None,
    passages: Sequence[Mapping[str, Any]] | None,
    settings: MatchSettings,
) -> Match:
    """Judge what was retrieved for one example.

    Args:
        context: the ground-truth text (already folded where several trials share it), or None.
        context_id: document id of the context, or None.
        passages: retrieved passages, best first, with `document_id` and `text` (each may be None); None where the
            target does not say what it retrieved. An empty list is a judged miss.
        settings: the matching rule.

    Returns:
        The judgement. Passages that cannot be compared (no id or text on either side) do not match. Where not a single
        one can be compared, the status says which side lacks it: `no_context` or `no_passages`.
    """
    folded = FoldedText(context) if isinstance(context, str) else context
    if folded is not None and not folded.words:
        folded = None
    by_id = context_id is not None and settings.match_by != "text"
    by_text = folded is not None and settings.match_by != "document_id"
    if not (by_id or by_text):
        return Match(MatchStatus.NO_CONTEXT, None, None, None, [])
    if passages is None:
        return Match(MatchStatus.NO_PASSAGES, None, None, None, [])
    matched: list[bool] = []
    methods: set[MatchMethod] = set()
    for passage in passages:
        if by_id and passage.get("document_id") is not None:
            methods.add("document_id")
            matched.append(passage["document_id"] == context_id)
        elif by_text and folded is not None and passage.get("text") is not None:
            methods.add("text")
            matched.append(text_matches(folded, FoldedText(passage["text"]), settings))
        else:
            matched.append(False)
    if passages and not methods:
        lacks_context = not by_text and any(passage.get("text") is not None for passage in passages)
        status = MatchStatus.NO_CONTEXT if lacks_context else MatchStatus.NO_PASSAGES
        return Match(status, None, None, None, [])
    rank = matched.index(True) + 1 if True in matched else None
    method = "mixed" if len(methods) > 1 else next(iter(methods), None)
    return Match(MatchStatus.JUDGED, method, rank, rank is not None and rank <= settings.k, matched)
