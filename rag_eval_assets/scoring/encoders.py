"""Sentence encoders, loaded once per process: the only module that talks to sentence-transformers."""

# sentence-transformers' signatures are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.loading import LOAD_LOCK, quiet_loading
from rag_eval_assets.scoring.threads import in_single_threads
from rag_eval_assets.weights.resolve import ResolvedModel


class SentenceEncoder:
    """Turns texts into unit vectors, on the CPU; safe to call from several threads.

    Raises:
        ConfigurationError: the folder holds no sentence-transformers model, or one with another length limit.
    """

    def __init__(self, model: ResolvedModel) -> None:
        require_sentence_model(model)
        with quiet_loading():
            from sentence_transformers import SentenceTransformer

            self._encoder: Any = SentenceTransformer(str(model.path), device="cpu", local_files_only=True)
        # Calls with and without truncation change a tokenizer's state, which other threads would stumble over: counting
        # has a tokenizer of its own.
        self._counter: Any = copy.deepcopy(self._encoder.tokenizer)
        self._counting = threading.Lock()
        found: object = self._encoder.max_seq_length
        if found != model.pin.max_seq_length:
            raise ConfigurationError(
                f"Model {model.pin.id!r}: the files beside the weights limit texts to {found} tokens, "
                f"expected {model.pin.max_seq_length}",
                fix=f"Take all files from revision {model.pin.revision}",
            )
        # Sets the state of the encoder's own tokenizer once and for all.
        self.dimension = self._encode(["warm up"], 1).shape[1]
        self.max_tokens = model.pin.max_seq_length
        self.most_tokens = self.max_tokens - int(self._counter.num_special_tokens_to_add())

    def count_tokens(self, text: str) -> int:
        """Word pieces of the whole text, without special tokens and without truncation."""
        with self._counting:
            return len(self._counter(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])

    def encode(self, texts: Sequence[str], *, batch_size: int = 1) -> NDArray[np.float32]:
        """One vector of unit length per text, shape (len(texts), dimension).

        With the default batch size a text's vector depends on that text alone, not on its neighbours nor on the number
        of cores; larger batches move its last bits. Texts beyond `most_tokens` are cut there.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        if batch_size == 1:
            return np.stack(in_single_threads(self._encode_each, texts))
        return self._encode(texts, batch_size)

    def _encode_each(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return list(self._encode(texts, 1))

    def _encode(self, texts: Sequence[str], batch_size: int) -> NDArray[np.float32]:
        vectors = self._encoder.encode(list(texts), batch_size=batch_size, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def require_sentence_model(model: ResolvedModel) -> None:
    """Refuse a plain encoder: sentence-transformers would give it a pooling that nobody chose.

    Raises:
        ConfigurationError: the model's folder has no `modules.json`.
    """
    if not (model.path / "modules.json").is_file():
        raise ConfigurationError(
            f"Model {model.pin.id!r} is no sentence encoder (its files have no modules.json)",
            fix="Use all-MiniLM-L6-v2 for sentence embeddings",
        )


@cache
def _load(model: ResolvedModel) -> SentenceEncoder:
    return SentenceEncoder(model)


def load_encoder(model: ResolvedModel) -> SentenceEncoder:
    """The encoder of `model`, loaded once per process; scorer and embedded target share it."""
    with LOAD_LOCK:
        return _load(model)
