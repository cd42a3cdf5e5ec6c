"""Rank metrics, with values worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_assets.retrieval.metrics import rank_metrics

unhurried = settings(deadline=None)  # a busy machine is no failure


def test_values_of_a_small_run() -> None:
    found = rank_metrics([1, 2, None, 6], k=5)
    assert (found.n_judged, found.n_matched, found.top_k_match_rate) == (4, 2, 0.5)
    assert found.hit_rate == {1: 0.25, 3: 0.5, 5: 0.5, 10: None}
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 / 6) / 4, abs=1e-15)
    # Rank 6 is beyond k = 5.
    assert found.ndcg == pytest.approx((1 + 1 / math.log2(3)) / 4, abs=1e-15)


def test_hit_rates_beyond_the_requested_k_are_null() -> None:
    assert rank_metrics([1], k=3).hit_rate == {1: 1.0, 3: 1.0, 5: None, 10: None}
    assert rank_metrics([7], k=10).hit_rate == {1: 0.0, 3: 0.0, 5: 0.0, 10: 1.0}


def test_all_is_null_where_nothing_was_judged() -> None:
    found = rank_metrics([], k=5)
    assert (found.n_judged, found.n_matched) == (0, 0)
    assert (found.top_k_match_rate, found.mrr, found.ndcg) == (None, None, None)
    assert set(found.hit_rate.values()) == {None}


def test_misses_alone_give_zeros() -> None:
    found = rank_metrics([None, None], k=5)
    assert (found.top_k_match_rate, found.mrr, found.ndcg) == (0.0, 0.0, 0.0)


@unhurried
@given(st.lists(st.none() | st.integers(1, 20), min_size=1), st.integers(1, 20))
def test_rates_are_shares_and_grow_with_the_cut_off(ranks: list[int | None], k: int) -> None:
    found = rank_metrics(ranks, k)
    rates = [rate for rate in found.hit_rate.values() if rate is not None]
    assert rates == sorted(rates)
    assert all(0 <= rate <= found.top_k_match_rate for rate in rates)
    assert found.top_k_match_rate == found.n_matched / found.n_judged
    assert 0 <= found.ndcg <= found.top_k_match_rate
    assert 0 <= found.mrr <= 1
