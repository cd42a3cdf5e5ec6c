"""Percentiles and intervals of the report's summaries; every function gives the same digits for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

MIN_ROWS = 20
"""Below this many rows an interval says more about luck than about the system, and none is given."""

RESAMPLES = 2_000
LEVEL = 0.95

_SEED = 0
_BATCH_VALUES = 1_000_000  # resampled values in memory at a time: 16 MB
_DECIMALS = 9  # of interval ends: far finer than they are sure, coarse enough to hide another machine's last bits
_NORMAL = NormalDist()

Floats = npt.NDArray[np.float64]


def mean(values: Sequence[float]) -> float:
    """The correctly rounded mean, whatever the order of the values (at least one)."""
    return math.fsum(values) / len(values)


def sample_std(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1); None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def percentiles(values: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """Percentiles (0 to 100) with linear interpolation, of at least one value."""
    return [float(value) for value in np.percentile(np.asarray(values, dtype=np.float64), wanted)]


def wilson_interval(hits: int, total: int) -> list[float] | None:
    """95 % Wilson score interval of a rate (Wilson 1927), in [0, 1]; None below `MIN_ROWS`."""
    if total < MIN_ROWS:
        return None
    z = _NORMAL.inv_cdf((1 + LEVEL) / 2)
    rate = hits / total
    scale = 1 + z * z / total
    centre = (rate + z * z / (2 * total)) / scale
    half = z * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / scale
    return [round(max(0.0, centre - half), _DECIMALS), round(min(1.0, centre + half), _DECIMALS)]


def bca_interval(values: Sequence[float]) -> list[float] | None:
    """95 % bootstrap interval of the mean, bias-corrected and accelerated (Efron 1987); None below `MIN_ROWS`.

    The jackknife of a mean has a closed form, so the cost grows with the number of values; scipy's general routine
    recomputes the statistic n times over n values. Deterministic; values that are all equal give [mean, mean].
    """
    if len(values) < MIN_ROWS:
        return None
    sample = np.asarray(values, dtype=np.float64)
    centre = mean(values)
    if sample.min() == sample.max():
        return [centre, centre]
    means = _resampled_means(sample)
    low, high = _bca_levels(sample, centre, means)
    ends = np.percentile(means, [100 * low, 100 * high])
    return [round(float(end), _DECIMALS) for end in ends]


def _resampled_means(sample: Floats) -> Floats:
    random = np.random.default_rng(_SEED)
    size = len(sample)
    rows = max(1, _BATCH_VALUES // size)
    parts = [
        sample[random.integers(0, size, (min(rows, RESAMPLES - start), size))].mean(axis=1)
        for start in range(0, RESAMPLES, rows)
    ]
    return np.concatenate(parts)


def _bca_levels(sample: Floats, centre: float, means: Floats) -> tuple[float, float]:
    """Which quantiles of the resampled means are the interval's ends."""
    plain = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    below = (np.count_nonzero(means < centre) + np.count_nonzero(means <= centre)) / (2 * len(means))
    if not 0 < below < 1:
        return plain
    bias = _NORMAL.inv_cdf(float(below))
    # Scaled, so that neither cubes nor squares under- or overflow; the acceleration does not depend on scale.
    offsets = sample - centre
    offsets = offsets / np.abs(offsets).max()
    acceleration = math.fsum(offsets**3) / (6 * math.fsum(offsets**2) ** 1.5)

    def level(probability: float) -> float:
        shifted = bias + _NORMAL.inv_cdf(probability)
        return _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))

    low, high = level(plain[0]), level(plain[1])
    return (low, high) if low < high else plain
