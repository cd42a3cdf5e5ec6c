"""Intervals and percentiles against values from textbooks and scipy."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_eval_assets.report.statistics import bca_interval, mean, percentiles, sample_std, wilson_interval

unhurried = settings(deadline=None)  # a busy machine is no failure


def test_percentiles_interpolate_linearly() -> None:
    assert percentiles([0.9, 0.5, 0.7], (10, 50, 90)) == pytest.approx([0.54, 0.7, 0.86], abs=1e-15)
    assert percentiles([0.25], (10, 50, 90)) == [0.25, 0.25, 0.25]


def test_mean_and_deviation_do_not_lose_digits() -> None:
    assert mean([0.1] * 10) == 0.1
    assert mean([1e16, 1.0, -1e16]) == 1 / 3
    assert sample_std([0.5, 0.7, 0.9]) == pytest.approx(0.2, abs=1e-15)
    assert sample_std([0.5]) is None


@pytest.mark.parametrize(("hits", "total"), [(0, 20), (7, 20), (81, 263), (20, 20), (2399, 2400)])
def test_wilson_interval_is_scipys(hits: int, total: int) -> None:
    expected = stats.binomtest(hits, total).proportion_ci(0.95, method="wilson")
    assert wilson_interval(hits, total) == pytest.approx([expected.low, expected.high], abs=1e-9)


def test_no_interval_below_twenty_rows() -> None:
    assert wilson_interval(5, 19) is None
    assert bca_interval([0.1 * i for i in range(19)]) is None
    assert bca_interval([0.1 * i for i in range(20)]) is not None


@pytest.mark.parametrize("size", [20, 300])
def test_bca_interval_is_scipys_up_to_the_luck_of_the_draw(size: int) -> None:
    sample = np.random.default_rng(7).beta(8, 2, size)
    expected = stats.bootstrap((sample,), np.mean, n_resamples=20_000, method="BCa", rng=1, batch=2_000)
    width = expected.confidence_interval.high - expected.confidence_interval.low
    assert bca_interval(sample.tolist()) == pytest.approx(list(expected.confidence_interval), abs=0.06 * width)


def test_bca_leans_to_the_long_tail_where_a_symmetric_interval_does_not() -> None:
    sample = np.random.default_rng(3).exponential(1, 60).tolist()
    low, high = bca_interval(sample)
    assert high - mean(sample) > mean(sample) - low


def test_equal_values_give_their_own_value() -> None:
    assert bca_interval([0.1] * 50) == [0.1, 0.1]


def test_the_interval_is_the_same_every_time() -> None:
    sample = np.random.default_rng(5).normal(0.8, 0.1, 2_400).tolist()
    assert bca_interval(sample) == bca_interval(sample)


@unhurried
@given(st.lists(st.floats(-1, 1, allow_subnormal=True), min_size=20, max_size=40))
def test_the_interval_lies_within_the_values(values: list[float]) -> None:
    low, high = bca_interval(values)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_one_outlier_among_equal_values_has_an_interval() -> None:
    low, high = bca_interval([0.5] * 19 + [1.0])
    assert 0.5 <= low < high <= 1.0


def test_cost_grows_with_the_rows_and_not_with_their_square() -> None:
    sample = np.random.default_rng(5).normal(0.8, 0.1, 24_000).tolist()
    started = time.perf_counter()
    bca_interval(sample)
    assert time.perf_counter() - started < 5
