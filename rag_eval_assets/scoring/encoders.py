"""Sentence encoders, loaded once per process: the packed one, and sentence-transformers as the reference."""

# sentence-transformers' signatures are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.encoder.device import Device, find_device
from rag_eval_assets.scoring.encoder.fingerprint import fingerprint, ids_key
from rag_eval_assets.scoring.encoder.sentence import require_sentence_model, sentence_engine, sentence_layer
from rag_eval_assets.scoring.encoder.shape import hidden_of
from rag_eval_assets.scoring.encoder.tokens import load_tokenizer
from rag_eval_assets.scoring.loading import LOAD_LOCK, quiet_loading, read_json
from rag_eval_assets.scoring.options import REFERENCE, choose_engine
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.scoring.threads import in_single_threads
from rag_eval_assets.weights.resolve import ResolvedModel, verify

Vectors = NDArray[np.float32]


class SentenceEncoder(Protocol):
    """Turns texts into unit vectors; safe to call from several threads.

    Attributes:
        dimension: length of a vector.
        max_tokens: tokens of a text that the model sees, special ones included.
        most_tokens: the same without special tokens.
    """

    dimension: int
    max_tokens: int
    most_tokens: int

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each whole text, without special tokens and without truncation."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector of unit length per text, shape (len(texts), dimension).

        A text's vector depends on that text alone, not on its neighbours nor on the number of cores. Texts beyond
        `most_tokens` are cut there.
        """
        ...


class PackedSentenceEncoder:
    """A sentence encoder on the packed encoder; the model is loaded when the first text is not among the stored ones.

    Raises:
        ConfigurationError: the folder holds a model with another length limit.
    """

    def __init__(self, model: ResolvedModel, precision: str, device: Device, stores: Stores | None) -> None:
        layer = sentence_layer(model)
        assert layer is not None
        _require_limit(model, read_json(model, "sentence_bert_config.json").get("max_seq_length"))
        self._model = model
        self._settings = (layer, precision, device)
        self._stores = stores
        self._digest = fingerprint(model, layer=layer, precision=precision, device=device).digest
        self._tokenizer = load_tokenizer(model)
        self.dimension = hidden_of(read_json(model, "config.json"))
        self.max_tokens = model.pin.max_seq_length
        self.most_tokens = self.max_tokens - self._tokenizer.specials

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each whole text, without special tokens and without truncation."""
        return [len(ids) - self._tokenizer.specials for ids in self._tokenizer.ids(texts)]

    def encode(self, texts: Sequence[str], *, most: int | None = None) -> Vectors:
        """See `SentenceEncoder`; `most` tokens go into a batch, which moves no bit."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        cut = [self._tokenizer.cut(ids, self.max_tokens) for ids in self._tokenizer.ids(texts)]
        keys = [ids_key(self._digest, "sentence", ids) for ids in cut]
        ids_of = dict(zip(keys, cut, strict=True))
        vectors: dict[bytes, Vectors] = {}
        if self._stores is not None:
            found = self._stores.vectors.get_many(list(ids_of))
            vectors = {key: vector for key, vector in zip(ids_of, found, strict=True) if vector is not None}
        new = [key for key in ids_of if key not in vectors]
        if new:
            from rag_eval_assets.scoring.encoder.encoder import load_packed

            encoder = load_packed(self._model, *self._settings)
            made = dict(zip(new, encoder.vectors([ids_of[key] for key in new], most=most), strict=True))
            vectors.update(made)
            if self._stores is not None:
                self._stores.vectors.put_many(made)
        return np.stack([vectors[key] for key in keys])


class ReferenceSentenceEncoder:
    """sentence-transformers itself, each text alone, on the CPU; safe to call from several threads.

    Raises:
        ConfigurationError: the folder holds no sentence-transformers model, or one with another length limit.
    """

    def __init__(self, model: ResolvedModel) -> None:
        require_sentence_model(model)
        verify(model)
        with quiet_loading():
            from sentence_transformers import SentenceTransformer

            self._encoder: Any = SentenceTransformer(str(model.path), device="cpu", local_files_only=True)
        # Calls with and without truncation change a tokenizer's state, which other threads would stumble over: counting
        # has a tokenizer of its own.
        self._counter: Any = copy.deepcopy(self._encoder.tokenizer)
        self._counting = threading.Lock()
        _require_limit(model, self._encoder.max_seq_length)
        # Sets the state of the encoder's own tokenizer once and for all.
        self.dimension = int(self._encode(["warm up"]).shape[1])
        self.max_tokens = model.pin.max_seq_length
        self.most_tokens = self.max_tokens - int(self._counter.num_special_tokens_to_add())

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each whole text, without special tokens and without truncation."""
        with self._counting:
            return [
                len(self._counter(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])
                for text in texts
            ]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `SentenceEncoder`; larger batches would move a vector's last bits."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack(in_single_threads(lambda part: list(self._encode(part)), texts))

    def _encode(self, texts: Sequence[str]) -> Vectors:
        vectors = self._encoder.encode(list(texts), batch_size=1, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def _require_limit(model: ResolvedModel, found: object) -> None:
    if found != model.pin.max_seq_length:
        raise ConfigurationError(
            f"Model {model.pin.id!r}: the files beside the weights limit texts to {found} tokens, "
            f"expected {model.pin.max_seq_length}",
            fix=f"Take all files from revision {model.pin.revision}",
        )


@cache
def _reference(model: ResolvedModel) -> ReferenceSentenceEncoder:
    return ReferenceSentenceEncoder(model)


def load_encoder(
    model: ResolvedModel, *, precision: str = "fp32", engine: str | None = None, stores: Stores | None = None
) -> SentenceEncoder:
    """The sentence encoder with these settings; its model is loaded once per process, for scorer and target alike.

    Args:
        model: the model.
        precision: fp32 or bf16.
        engine: `reference` for sentence-transformers itself; by default the packed encoder where it can compute the
            model.
        stores: where vectors are looked up and kept; nowhere by default.

    Raises:
        ConfigurationError: the model is no sentence encoder, or has another length limit than the pinned one.
    """
    require_sentence_model(model)
    chosen = choose_engine("sentence_cosine", engine, precision, best=sentence_engine(model))
    if chosen != REFERENCE:
        return PackedSentenceEncoder(model, precision, find_device(), stores)
    with LOAD_LOCK:
        return _reference(model)
