"""Cosine between sentence embeddings through sentence-transformers, each text alone: the reference engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.scoring.base import Advance, Pair, PairScore, library_versions
from rag_eval_assets.scoring.blocks import ReadyPair, score_in_blocks
from rag_eval_assets.scoring.encoders import SentenceEncoder, load_encoder, require_sentence_model
from rag_eval_assets.tables import SENTENCE_COSINE
from rag_eval_assets.weights.resolve import ResolvedModel

CODE_VERSION = "1"


class SentenceCosine:
    """Cosine of the sentence embeddings of candidate and reference, in [-1, 1]; the best one with several references.

    Raises:
        ConfigurationError: `model` is no sentence encoder.
    """

    name = "sentence_cosine"
    code_version = CODE_VERSION
    spec = SENTENCE_COSINE

    def __init__(self, model: ResolvedModel) -> None:
        require_sentence_model(model)
        self._model = model

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        """Score every pair; a pair's value does not depend on its neighbours, to the last bit."""
        return score_in_blocks(self._engine, pairs, advance)

    def _engine(self) -> CosineEngine:
        return CosineEngine(load_encoder(self._model))

    def describe(self) -> dict[str, Any]:
        """Model, token limit (special tokens included), engine and library versions."""
        return {
            **self._model.pin.describe(),
            "max_tokens": self._model.pin.max_seq_length,
            "engine": "reference",
            "libraries": library_versions("sentence-transformers", "transformers", "tokenizers", "torch"),
        }


class CosineEngine:
    """Computes cosines with an encoder; each distinct text of a call is encoded once."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    @property
    def most_tokens(self) -> int:
        """Tokens of a text that the model sees, without special tokens."""
        return self._encoder.most_tokens

    def count_tokens(self, text: str) -> int:
        """Word pieces of the whole text, without special tokens."""
        return self._encoder.count_tokens(text)

    def compute(self, pairs: Sequence[ReadyPair]) -> list[dict[str, float]]:
        """The cosine of each pair, the maximum over its references."""
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.candidate, *pair.references)))
        vectors = dict(zip(texts, self._encoder.encode(texts).astype(np.float64), strict=True))
        return [
            {"cosine": max(cosine(vectors[pair.candidate], vectors[reference]) for reference in pair.references)}
            for pair in pairs
        ]


def cosine(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Cosine of two vectors, within [-1, 1]; NaN where one of them is not finite or has no length.

    Sums are exactly rounded, so that the value depends neither on the order of summation nor on the processor.
    """
    length = math.sqrt(_dot(left, left)) * math.sqrt(_dot(right, right))
    if not math.isfinite(length) or length == 0.0:
        return math.nan
    return max(-1.0, min(1.0, _dot(left, right) / length))


def _dot(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    products: list[float] = (left * right).tolist()
    return math.fsum(products)
