"""The rule of the `similarity` scorer: what the cosine of two vectors means for a threshold."""

from __future__ import annotations

from rag_eval_assets.recording.cassette.vectors import IncomparableError, Vector, cosine
from rag_eval_assets.scoring.base import PairScore, Verdict
from rag_eval_assets.status import ScoreStatus

SLACK = 1e-9
"""A score this little below the threshold still passes (EvalCore's rule), so that rounding decides nothing."""

_DECIMALS = 4
_MOST_DECIMALS = 17


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


def _shown(value: float, threshold: float) -> str:
    """`value` with four decimals, or with as many as it takes to be seen below the threshold."""
    for decimals in range(_DECIMALS, _MOST_DECIMALS):
        text = f"{value:.{decimals}f}"
        if float(text) < threshold:
            return text
    return repr(value)


def _shortest(number: float) -> str:
    return repr(float(number)).removesuffix(".0")
