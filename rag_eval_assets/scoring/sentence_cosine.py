"""Cosine between sentence embeddings: the scorer, its settings, and what a report says about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.scoring.base import Advance, Pair, PairScore, library_versions
from rag_eval_assets.scoring.blocks import Known, ReadyPair, score_in_blocks
from rag_eval_assets.scoring.encoder.device import Device, find_device
from rag_eval_assets.scoring.encoder.fingerprint import fingerprint
from rag_eval_assets.scoring.encoder.sentence import require_sentence_model, sentence_engine, sentence_layer
from rag_eval_assets.scoring.options import REFERENCE, choose_engine
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.tables import SENTENCE_COSINE
from rag_eval_assets.weights.resolve import ResolvedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rag_eval_assets.scoring.encoders import SentenceEncoder

CODE_VERSION = "2"

_BLOCK_PAIRS = 256
"""Pairs between two reports of progress."""


class SentenceCosine:
    """Cosine of the sentence embeddings of candidate and reference, in [-1, 1]; the best one with several references.

    Args:
        model: the sentence encoder.
        precision: fp32, or bf16: some three times as fast, and off by up to 2e-3.
        engine: `reference` calls sentence-transformers itself, one text at a time. By default the packed encoder,
            or for other architectures transformers in batches, whose values are within 1e-6 of that, where either
            knows the model.
        stores: where scores and vectors are looked up and kept; nowhere by default.

    Raises:
        ConfigurationError: `model` is no sentence encoder, or the engine has no such precision.
    """

    name = "sentence_cosine"
    code_version = CODE_VERSION
    spec = SENTENCE_COSINE

    def __init__(
        self,
        model: ResolvedModel,
        *,
        precision: str = "fp32",
        engine: str | None = None,
        stores: Stores | None = None,
    ) -> None:
        require_sentence_model(model)
        self._model = model
        self._precision = precision
        self._layer = sentence_layer(model)
        self._engine_name = choose_engine(self.name, engine, precision, best=sentence_engine(model))
        self._stores = None if self._engine_name == REFERENCE else stores

    def for_references(self, references: Iterable[Any]) -> SentenceCosine:
        """This scorer, which depends on no other reference than a pair's own."""
        del references
        return self

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        """Score every pair; a pair's value does not depend on its neighbours, to the last bit."""
        known = Known(self._stores.scores, self._digest()) if self._stores is not None else None
        return score_in_blocks(self._engine, pairs, advance, known)

    def describe(self) -> dict[str, Any]:
        """Model, token limit (special tokens included), settings, engine, device and library versions."""
        return {
            **self._model.pin.describe(),
            "max_tokens": self._model.pin.max_seq_length,
            "precision": self._precision,
            "engine": self._engine_name,
            **self._device.describe(),
            "libraries": library_versions("sentence-transformers", "transformers", "tokenizers", "torch"),
        }

    @cached_property
    def _device(self) -> Device:
        return find_device("cpu" if self._engine_name == REFERENCE else None)

    def _digest(self) -> bytes:
        """Digest of all that a score depends on besides its pair."""
        assert self._layer is not None
        encoder = fingerprint(self._model, layer=self._layer, precision=self._precision, device=self._device)
        parts = {
            "encoder": encoder.describe(),
            "scorer": self.name,
            "code": CODE_VERSION,
            "max_tokens": self._model.pin.max_seq_length,
        }
        return bytes.fromhex(content_hash(parts))

    def _engine(self) -> CosineEngine:
        # Here, since it imports numpy, which a run that finds all its scores does without.
        from rag_eval_assets.scoring.encoders import load_encoder

        engine = REFERENCE if self._engine_name == REFERENCE else None
        return CosineEngine(load_encoder(self._model, precision=self._precision, engine=engine, stores=self._stores))


class CosineEngine:
    """Computes cosines with an encoder; each distinct text of a block is encoded once."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    @property
    def most_tokens(self) -> int:
        """Tokens of a text that the model sees, without special tokens."""
        return self._encoder.most_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each whole text, without special tokens."""
        return self._encoder.count_tokens(texts)

    def compute(self, pairs: Sequence[ReadyPair]) -> Iterator[tuple[int, dict[str, float]]]:
        """The cosine of each pair, the maximum over its references."""
        for start in range(0, len(pairs), _BLOCK_PAIRS):
            block = pairs[start : start + _BLOCK_PAIRS]
            texts = list(dict.fromkeys(text for pair in block for text in (pair.candidate, *pair.references)))
            vectors = dict(zip(texts, self._encoder.encode(texts).astype("float64"), strict=True))
            for place, pair in enumerate(block, start):
                candidate = vectors[pair.candidate]
                yield place, {"cosine": max(cosine(candidate, vectors[text]) for text in pair.references)}


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
