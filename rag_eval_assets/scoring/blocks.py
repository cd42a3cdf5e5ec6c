"""Runs a metric over pairs: what is known is looked up, what is missing computed, what goes wrong becomes a status."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rag_eval_assets.errors import describe_error
from rag_eval_assets.scoring.base import Advance, Pair, PairScore
from rag_eval_assets.scoring.encoder.fingerprint import pair_key
from rag_eval_assets.scoring.stores import Store
from rag_eval_assets.scoring.texts import classify, usable_references
from rag_eval_assets.status import ScoreStatus

WINDOW_PAIRS = 2048
"""Pairs that are looked up, cut into tokens and sorted by length together: some 2 MB of token ids."""

_KEPT_PAIRS = 256
"""Scores that are stored together; so many are computed again after a kill."""


_LASTING = frozenset({ScoreStatus.SCORED, ScoreStatus.UNTOKENIZABLE})


@dataclass(frozen=True)
class ReadyPair:
    """A pair whose texts all hold tokens."""

    candidate: str
    references: tuple[str, ...]
    truncated: bool


class Engine(Protocol):
    """A loaded model that computes one metric."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text, without special tokens and without truncation."""
        ...

    @property
    def most_tokens(self) -> int:
        """Tokens of a text that the model sees, without special tokens."""
        ...

    def compute(self, pairs: Sequence[ReadyPair]) -> Iterable[tuple[int, dict[str, float]]]:
        """Place and values of each pair, in any order. A pair's values depend on that pair alone."""
        ...


@dataclass(frozen=True)
class Known:
    """Scores of earlier runs.

    Attributes:
        store: where they are.
        scorer: digest of all that a score depends on besides its pair.
    """

    store: Store[PairScore]
    scorer: bytes


def score_in_blocks(
    load: Callable[[], Engine], pairs: Sequence[Pair], advance: Advance, known: Known | None = None
) -> list[PairScore]:
    """Score `pairs`, in order. `load` is called only where there is something to compute.

    Where pairs raise, they are tried again in halves, so that one bad pair costs nobody else the score.
    """
    results: list[PairScore] = []
    for start in range(0, len(pairs), WINDOW_PAIRS):
        results.extend(_Window(pairs[start : start + WINDOW_PAIRS], advance, known).score(load))
    return results


class _Window:
    """Some pairs, and what became of them so far."""

    def __init__(self, pairs: Sequence[Pair], advance: Advance, known: Known | None) -> None:
        self._advance = advance
        self._known = known
        self._results: list[PairScore | None] = [
            None if status is None else PairScore(status) for status in map(classify, pairs)
        ]
        # Alternatives that are no text are passed over, so they are no part of a key either.
        self._open = {
            index: replace(pair, references=usable_references(pair))
            for index, pair in enumerate(pairs)
            if self._results[index] is None
        }
        self._keys: dict[int, bytes] = {}
        self._fresh: dict[bytes, PairScore] = {}

    def score(self, load: Callable[[], Engine]) -> list[PairScore]:
        self._look_up()
        self._advance(len(self._results) - len(self._open))
        try:
            if self._open:
                engine = load()
                ready: dict[int, ReadyPair] = {}
                for index, entry in _prepare(engine, self._open).items():
                    if isinstance(entry, ReadyPair):
                        ready[index] = entry
                    else:
                        self._settle(index, entry)
                self._compute(engine, ready)
        finally:
            # Also where the run is interrupted: what was computed stays computed.
            self._keep(0)
        return [result for result in self._results if result is not None]

    def _look_up(self) -> None:
        if self._known is None or not self._open:
            return
        self._keys = {index: pair_key(self._known.scorer, pair) for index, pair in self._open.items()}
        found = self._known.store.get_many(list(self._keys.values()))
        for index, score in zip(list(self._open), found, strict=True):
            if score is not None:
                self._results[index] = score
                del self._open[index]

    def _compute(self, engine: Engine, ready: Mapping[int, ReadyPair]) -> None:
        left = dict(ready)
        if not left:
            return
        indices = list(left)
        try:
            for place, values in engine.compute(list(ready.values())):
                index = indices[place]
                self._settle(index, _finite(left.pop(index), values))
        except Exception as error:  # noqa: BLE001 - any failure on one pair is that row's status
            if len(left) == 1:
                index, pair = left.popitem()
                self._settle(index, PairScore(ScoreStatus.SCORER_ERROR, pair.truncated, detail=describe_error(error)))
            indices = list(left)
            half = len(indices) // 2
            for part in (indices[:half], indices[half:]):
                self._compute(engine, {index: left[index] for index in part})

    def _settle(self, index: int, result: PairScore) -> None:
        self._results[index] = result
        self._advance(1)
        # An error is of the moment and may be gone next time.
        if index in self._keys and result.status in _LASTING:
            self._fresh[self._keys[index]] = result
            self._keep(_KEPT_PAIRS)

    def _keep(self, least: int) -> None:
        if self._known is not None and len(self._fresh) > least:
            self._known.store.put_many(self._fresh)
            self._fresh = {}


def _prepare(engine: Engine, pairs: Mapping[int, Pair]) -> dict[int, ReadyPair | PairScore]:
    texts = list(dict.fromkeys(text for pair in pairs.values() for text in (pair.candidate or "", *pair.references)))
    counts = _count(engine, [text or "" for text in texts])
    return {index: _ready(pair, counts, engine.most_tokens) for index, pair in pairs.items()}


def _count(engine: Engine, texts: Sequence[str]) -> dict[str | None, int | PairScore]:
    try:
        return dict(zip(texts, engine.count_tokens(texts), strict=True))
    except Exception as error:  # noqa: BLE001 - any failure on one text is the status of that text's rows
        if len(texts) == 1:
            return {texts[0]: PairScore(ScoreStatus.SCORER_ERROR, detail=describe_error(error))}
        half = len(texts) // 2
        return {**_count(engine, texts[:half]), **_count(engine, texts[half:])}


def _ready(pair: Pair, counts: Mapping[str | None, int | PairScore], most: int) -> ReadyPair | PairScore:
    tokens: dict[str, int] = {}
    for text in (pair.candidate, *pair.references):
        count = counts[text]
        if isinstance(count, PairScore):
            return count
        tokens[text or ""] = count
    if tokens[pair.candidate or ""] == 0:
        return PairScore(ScoreStatus.UNTOKENIZABLE, detail="the candidate holds no token")
    references = tuple(text for text in dict.fromkeys(pair.references) if text and tokens[text] > 0)
    if not references:
        return PairScore(ScoreStatus.UNTOKENIZABLE, detail="the reference holds no token")
    longest = max(tokens[text] for text in (pair.candidate or "", *references))
    return ReadyPair(pair.candidate or "", references, truncated=longest > most)


def _finite(pair: ReadyPair, values: Mapping[str, float]) -> PairScore:
    bad = [name for name, value in values.items() if not math.isfinite(value)]
    if bad:
        return PairScore(ScoreStatus.SCORER_ERROR, pair.truncated, detail=f"not a finite number: {', '.join(bad)}")
    return PairScore(ScoreStatus.SCORED, pair.truncated, values)
