"""The packed encoder: token ids in, unit token rows and sentence vectors out, computed by workers batch by batch."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.encoder.bert import Bert
from rag_eval_assets.scoring.encoder.device import Device
from rag_eval_assets.scoring.encoder.packing import MOST_TOKENS, Batch, pack
from rag_eval_assets.scoring.encoder.shape import bert_shape, best_engine, hidden_of
from rag_eval_assets.scoring.encoder.tokens import Ids
from rag_eval_assets.scoring.encoder.transformer import Transformer
from rag_eval_assets.scoring.loading import LOAD_LOCK, read_json
from rag_eval_assets.scoring.options import PRECISIONS, REFERENCE
from rag_eval_assets.scoring.threads import Workers, single_threads
from rag_eval_assets.weights.registry import WEIGHTS_FILE
from rag_eval_assets.weights.resolve import ResolvedModel, verify

if TYPE_CHECKING:
    from torch import Tensor

_GPU_TOKENS = 16_384
"""Tokens of a batch on a GPU, which wants larger products."""


@dataclass(frozen=True)
class Wanted:
    """What is made of each text: token rows of unit length, a sentence vector of unit length, or both."""

    rows: bool = False
    vectors: bool = False


@dataclass(frozen=True)
class Encoded:
    """One text, in whatever was wanted.

    Attributes:
        rows: float32, shape (tokens, dimensions), a view of its batch's rows.
        vector: float32, shape (dimensions,): the mean over all tokens, at unit length.
    """

    rows: Tensor | None
    vector: NDArray[np.float32] | None


@dataclass(frozen=True)
class Pending:
    """A text that a worker has yet to encode, or has encoded."""

    batch: Future[list[Encoded]]
    place: int

    def result(self) -> Encoded:
        """Wait for it."""
        return self.batch.result()[self.place]


class PackedEncoder:
    """A model up to one layer; a text's results depend on its ids alone, to the last bit.

    That holds on a CPU; GPU libraries choose their kernels by the size of a batch. What is no plain BERT encoder is
    computed by transformers' forward pass.

    Args:
        model: the model.
        layer: the last layer that is computed, 1-based.
        precision: fp32 or, for a plain BERT encoder, bf16.
        device: where it computes.

    Raises:
        ConfigurationError: it is of an architecture that nobody has compared with bert-score.
    """

    def __init__(self, model: ResolvedModel, layer: int, precision: str, device: Device) -> None:
        import torch

        if best_engine(model) == REFERENCE:
            raise ConfigurationError(f"Model {model.pin.id!r} is no known encoder", fix="Use engine: reference")
        shape = bert_shape(model)
        dtype = torch.float32 if precision == PRECISIONS[0] else torch.bfloat16
        self.dimension = hidden_of(read_json(model, "config.json"))
        self._device = device
        self._network = (
            Bert(model.path / WEIGHTS_FILE, shape, layer, dtype, device.kind)
            if shape is not None
            else Transformer(model, layer, device.kind)
        )

    @contextmanager
    def workers(self) -> Generator[Workers]:
        """The workers that `submit` takes; a GPU is fed by one."""
        with single_threads(None if self._device.kind == "cpu" else 1) as workers:
            yield workers

    def submit(
        self, workers: Workers, texts: Sequence[Ids], wanted: Wanted, *, last: bool, most: int | None = None
    ) -> list[Pending]:
        """Begin to encode `texts`, in any order; the results stand in theirs.

        Args:
            workers: who computes.
            texts: token ids of each text, cut to what the model can read.
            wanted: what is made of each text.
            last: whether no further texts follow.
            most: tokens of a batch; what is best for the device by default.
        """
        budget = most or (MOST_TOKENS if self._device.kind == "cpu" else _GPU_TOKENS)
        pending: dict[int, Pending] = {}
        for batch in pack([len(ids) for ids in texts], budget, shared_by=workers.count if last else 0):
            task = workers.submit(self._encode, [texts[index] for index in batch.members], batch, wanted)
            pending.update({index: Pending(task, place) for place, index in enumerate(batch.members)})
        return [pending[index] for index in range(len(texts))]

    def vectors(self, texts: Sequence[Ids], *, most: int | None = None) -> list[NDArray[np.float32]]:
        """The sentence vector of each text, shape (dimensions,); equal texts are encoded once."""
        distinct = {ids.tobytes(): ids for ids in texts}
        with self.workers() as workers:
            pending = self.submit(workers, list(distinct.values()), Wanted(vectors=True), last=True, most=most)
            found = {key: entry.result().vector for key, entry in zip(distinct, pending, strict=True)}
        vectors = [found[ids.tobytes()] for ids in texts]
        return [vector for vector in vectors if vector is not None]

    def _encode(self, texts: Sequence[Ids], batch: Batch, wanted: Wanted) -> list[Encoded]:
        import torch

        with torch.inference_mode():
            rows = self._network.forward(torch.tensor(np.concatenate(texts), dtype=torch.int64), batch.groups)
            parts = list(_split(rows, texts))
            vectors = [_unit_mean(part) if wanted.vectors else None for part in parts]
            if not wanted.rows:
                return [Encoded(None, vector) for vector in vectors]
            rows.div_(rows.square().sum(1, keepdim=True).sqrt_())
            return [Encoded(part, vector) for part, vector in zip(parts, vectors, strict=True)]


def _split(rows: Tensor, texts: Sequence[Ids]) -> Iterator[Tensor]:
    start = 0
    for ids in texts:
        yield rows[start : start + len(ids)]
        start += len(ids)


def _unit_mean(rows: Tensor) -> NDArray[np.float32]:
    import torch

    # Text by text: over several texts at once, the order of a sum may follow their number.
    vector: NDArray[np.float32] = torch.nn.functional.normalize(rows.mean(0), dim=0).cpu().numpy()
    return vector


@cache
def _load(model: ResolvedModel, layer: int, precision: str, device: Device) -> PackedEncoder:
    # Beside each other: hashing takes as long as importing torch and reordering the weights.
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(verify, model)
        encoder = PackedEncoder(model, layer, precision, device)
        checked.result()
    return encoder


def load_packed(model: ResolvedModel, layer: int, precision: str, device: Device) -> PackedEncoder:
    """The encoder with these settings, loaded once per process from weights whose hash is checked.

    Raises:
        ConfigurationError: it is of an unknown architecture, or its weights are not the pinned ones.
    """
    with LOAD_LOCK:
        return _load(model, layer, precision, device)
