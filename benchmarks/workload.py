"""The texts that are scored: generated answers of real lengths, the same on every machine."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

MEAN_WORDS = 55
"""As the answers of rag-dataset-12000 have."""

SPREAD = 0.45
"""Standard deviation of the logarithm of the number of words. It makes bert-score, which fills its batches up to their
longest text, pad 17 % of all tokens at 1,000 pairs, 45 % at 64 and 60 % at 16, about as real answers do."""

DUPLICATES = 0.055
"""Share of candidates that repeat an earlier one word for word, as refusals do."""

RARE = 0.08
"""Share of words that the tokenizer cuts into several pieces; a word then has about 1.3 tokens."""

Pairs = tuple[list[str], list[str]]


def pairs(count: int, vocabulary: Path, seed: int = 0) -> Pairs:
    """`count` candidates and references.

    Args:
        count: how many.
        vocabulary: a `vocab.txt` of BERT's, from which words are drawn, frequent ones more often.
        seed: another one gives other texts.
    """
    draw = random.Random(seed)
    words = [word for word in vocabulary.read_text(encoding="utf-8").split() if word.isalpha() and word.isascii()]
    words = [word for word in words if len(word) > 1]
    weights = list(accumulate(1 / rank for rank in range(10, len(words) + 10)))
    candidates: list[str] = []
    references: list[str] = []
    for _ in range(count):
        repeats = candidates and draw.random() < DUPLICATES
        candidates.append(draw.choice(candidates) if repeats else _text(draw, words, weights))
        references.append(_text(draw, words, weights))
    return candidates, references


def _text(draw: random.Random, words: list[str], weights: list[float]) -> str:
    # The mean of a log-normal variable is exp(mu + sigma^2 / 2).
    length = min(350, max(3, round(MEAN_WORDS * draw.lognormvariate(-(SPREAD**2) / 2, SPREAD))))
    drawn = draw.choices(words, cum_weights=weights, k=length)
    rare = [word + draw.choice(words) if draw.random() < RARE else word for word in drawn]
    sentences = [rare[start : start + 14] for start in range(0, length, 14)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)


def changed(texts: list[str], share: float) -> list[str]:
    """The texts with the words of a share of them in another order: new to every cache, and as long as before."""
    chosen = {text for text in texts if random.Random(text).random() < share}
    return [_shuffled(text) if text in chosen else text for text in texts]


def _shuffled(text: str) -> str:
    words = text.split()
    random.Random(text).shuffle(words)
    return " ".join(words)
