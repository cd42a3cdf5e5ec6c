"""Runs a metric over pairs in blocks of bounded size; whatever goes wrong with a pair becomes its status."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_eval_assets.errors import describe_error
from rag_eval_assets.scoring.base import Advance, Pair, PairScore
from rag_eval_assets.scoring.texts import classify, usable_references
from rag_eval_assets.status import ScoreStatus

BLOCK_PAIRS = 64
"""Pairs whose embeddings are in memory together: some 15 MB for BERTScore with bert-base-uncased and usual answers."""


@dataclass(frozen=True)
class ReadyPair:
    """A pair whose texts all hold tokens."""

    candidate: str
    references: tuple[str, ...]
    truncated: bool


class Engine(Protocol):
    """A loaded model that computes one metric."""

    def count_tokens(self, text: str) -> int:
        """Tokens of the whole text, without special tokens and without truncation."""
        ...

    @property
    def most_tokens(self) -> int:
        """Tokens of a text that the model sees, without special tokens."""
        ...

    def compute(self, pairs: Sequence[ReadyPair]) -> list[dict[str, float]]:
        """The values of each pair. A pair's values depend on that pair alone."""
        ...


def score_in_blocks(load: Callable[[], Engine], pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
    """Score `pairs` in order, block by block. `load` is called only where there is something to compute.

    A block that raises is computed again pair by pair, so that one bad pair costs nobody else the score.
    """
    results: list[PairScore] = []
    for start in range(0, len(pairs), BLOCK_PAIRS):
        block = pairs[start : start + BLOCK_PAIRS]
        results.extend(_score_block(load, block))
        advance(len(block))
    return results


def _score_block(load: Callable[[], Engine], block: Sequence[Pair]) -> list[PairScore]:
    statuses = [classify(pair) for pair in block]
    if all(status is not None for status in statuses):
        return [PairScore(status) for status in statuses if status is not None]
    engine = load()
    prepared = [
        PairScore(status) if status is not None else _prepare(engine, pair)
        for pair, status in zip(block, statuses, strict=True)
    ]
    scores = iter(_compute(engine, [entry for entry in prepared if isinstance(entry, ReadyPair)]))
    return [next(scores) if isinstance(entry, ReadyPair) else entry for entry in prepared]


def _prepare(engine: Engine, pair: Pair) -> ReadyPair | PairScore:
    candidate = pair.candidate or ""
    try:
        candidate_tokens = engine.count_tokens(candidate)
        reference_tokens = {text: engine.count_tokens(text) for text in usable_references(pair)}
    except Exception as error:  # noqa: BLE001 - any failure on one text is that row's status
        return PairScore(ScoreStatus.SCORER_ERROR, detail=describe_error(error))
    if candidate_tokens == 0:
        return PairScore(ScoreStatus.UNTOKENIZABLE, detail="the candidate holds no token")
    references = tuple(text for text, tokens in reference_tokens.items() if tokens > 0)
    if not references:
        return PairScore(ScoreStatus.UNTOKENIZABLE, detail="the reference holds no token")
    longest = max(candidate_tokens, *(reference_tokens[text] for text in references))
    return ReadyPair(candidate, references, truncated=longest > engine.most_tokens)


def _compute(engine: Engine, pairs: Sequence[ReadyPair]) -> list[PairScore]:
    if not pairs:
        return []
    try:
        computed = engine.compute(pairs)
    except Exception as error:  # noqa: BLE001 - any failure on one pair is that row's status
        if len(pairs) == 1:
            return [PairScore(ScoreStatus.SCORER_ERROR, pairs[0].truncated, detail=describe_error(error))]
        return [score for pair in pairs for score in _compute(engine, [pair])]
    return [_finite(pair, values) for pair, values in zip(pairs, computed, strict=True)]


def _finite(pair: ReadyPair, values: Mapping[str, float]) -> PairScore:
    bad = [name for name, value in values.items() if not math.isfinite(value)]
    if bad:
        return PairScore(ScoreStatus.SCORER_ERROR, pair.truncated, detail=f"not a finite number: {', '.join(bad)}")
    return PairScore(ScoreStatus.SCORED, pair.truncated, values)
