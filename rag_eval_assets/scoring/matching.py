"""Greedy matching of token rows, and what is made of it: the arithmetic of BERTScore, a pair at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

NAMES = ("precision", "recall", "f1")

_ALIGNED = 64
"""Bytes: matrix products may round otherwise where their operands begin elsewhere."""


@dataclass(frozen=True)
class Side:
    """One text of a pair.

    Attributes:
        rows: unit rows of all its tokens, special ones included, shape (tokens, dimensions).
        weights: weight of each token in the mean, shape (tokens,); 0 for the special ones, which are candidates of the
            other side's matches all the same.
    """

    rows: Tensor
    weights: NDArray[np.float64]


def match(candidate: Side, reference: Side) -> tuple[float, float, float]:
    """Precision, recall and F1 of Zhang et al. (2020), arXiv:1904.09675; NaN where a side has no weight at all.

    The means are exactly rounded sums over float32 cosines. F1 is 0 where precision and recall cancel out, as in
    bert-score.
    """
    similarity = aligned(candidate.rows) @ aligned(reference.rows).T
    precision = _mean(similarity.amax(1), candidate.weights)
    recall = _mean(similarity.amax(0), reference.weights)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def best(rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The maximum of each value over several references; NaN where one of them is NaN."""
    return tuple(math.nan if any(map(math.isnan, column)) else max(column) for column in zip(*rows, strict=True))


def aligned(rows: Tensor) -> Tensor:
    """`rows`, or a copy that begins where tensors of their own begin."""
    return rows.clone() if rows.data_ptr() % _ALIGNED else rows


def _mean(best_cosines: Tensor, weights: NDArray[np.float64]) -> float:
    total = math.fsum(weights.tolist())
    weighted = best_cosines.cpu().numpy() * weights
    return math.fsum(weighted.tolist()) / total if total else math.nan
