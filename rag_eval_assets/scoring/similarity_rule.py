"""The rule of the `similarity` scorer: the cosine of two vectors, and whether it reaches a threshold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.scoring.base import PairScore, Verdict
from rag_eval_assets.status import ScoreStatus

SLACK = 1e-9
"""A score this little below the threshold still passes (EvalCore's rule), so that rounding decides nothing."""

_DECIMALS = 4
_MOST_DECIMALS = 17

Vector = NDArray[np.float64]


class IncomparableError(ValueError):
    """Two vectors have no cosine."""


def cosine(left: Vector, right: Vector) -> float:
    """Cosine of two vectors, in [-1, 1] and always finite.

    Sums are exactly rounded, so that the value depends neither on the order of summation nor on the processor; vectors
    are scaled by powers of two first, which moves no bit and keeps squares of 1e200 and 1e-200 apart from nothing.

    Raises:
        IncomparableError: the lengths differ, or a vector has no direction.
    """
    if len(left) != len(right):
        raise IncomparableError(f"the vectors have different lengths ({len(left)} and {len(right)})")
    first, second = _scaled(left), _scaled(right)
    length = math.sqrt(_dot(first, first) * _dot(second, second))
    return max(-1.0, min(1.0, _dot(first, second) / length))


def judge(reference_vectors: list[Vector], candidate: Vector, threshold: float) -> PairScore:
    """The score of a candidate against the nearest of its references that it can be compared with."""
    best: float | None = None
    problem = ""
    for vector in reference_vectors:
        try:
            value = cosine(vector, candidate)
        except IncomparableError as error:
            problem = problem or str(error)
            continue
        best = value if best is None else max(best, value)
    if best is None:
        return failing(ScoreStatus.INCOMPARABLE, threshold, problem)
    passed = best >= threshold - SLACK
    reason = None if passed else f"cosine {_shown(best, threshold)} is below the threshold {_shortest(threshold)}"
    return PairScore(ScoreStatus.SCORED, values={"similarity": best}, verdict=Verdict(passed, best, threshold, reason))


def failing(status: ScoreStatus, threshold: float, reason: str) -> PairScore:
    """A pair without a score, which fails: its verdict's value is 0.0."""
    return PairScore(status, detail=reason, verdict=Verdict(False, 0.0, threshold, reason))


def _scaled(vector: Vector) -> Vector:
    largest = float(np.abs(vector).max()) if len(vector) else 0.0
    if largest == 0.0:
        raise IncomparableError("a vector of zero magnitude has no direction")
    return np.ldexp(vector, -math.frexp(largest)[1])


def _dot(left: Vector, right: Vector) -> float:
    products: list[float] = (left * right).tolist()
    return math.fsum(products)


def _shown(value: float, threshold: float) -> str:
    """`value` with four decimals, or with as many as it takes to be seen below the threshold."""
    for decimals in range(_DECIMALS, _MOST_DECIMALS):
        text = f"{value:.{decimals}f}"
        if float(text) < threshold:
            return text
    return repr(value)


def _shortest(number: float) -> str:
    return repr(float(number)).removesuffix(".0")
