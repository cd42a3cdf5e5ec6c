"""Rank metrics over judged examples, each with exactly one relevant item: the ground-truth context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HIT_RATE_CUTOFFS = (1, 3, 5, 10)
"""The j of the reported hit_rate@j."""


@dataclass(frozen=True)
class RankMetrics:
    """What the ranks of a run say; every rate is in [0, 1], and None where nothing was judged.

    Attributes:
        k: the requested cut-off.
        n_judged: examples judged.
        n_matched: those with rank <= k.
        top_k_match_rate: n_matched / n_judged.
        hit_rate: share with rank <= j, by j; None for j above k.
        mrr: mean of 1 / rank over all returned passages, 0 for a miss.
        ndcg: nDCG@k, that is the mean of 1 / log2(rank + 1) where rank <= k, else 0.
    """

    k: int
    n_judged: int
    n_matched: int
    top_k_match_rate: float | None
    hit_rate: dict[int, float | None]
    mrr: float | None
    ndcg: float | None


def rank_metrics(ranks: Sequence[int | None], k: int) -> RankMetrics:
    """Metrics of a run.

    Args:
        ranks: one per judged example: its best 1-based rank, or None for a miss.
        k: the cut-off, from 1.
    """
    judged = len(ranks)
    found = [rank for rank in ranks if rank is not None]

    def share(cutoff: int) -> float | None:
        return sum(rank <= cutoff for rank in found) / judged if judged else None

    return RankMetrics(
        k=k,
        n_judged=judged,
        n_matched=sum(rank <= k for rank in found),
        top_k_match_rate=share(k),
        hit_rate={j: share(j) if j <= k else None for j in HIT_RATE_CUTOFFS},
        mrr=math.fsum(1 / rank for rank in found) / judged if judged else None,
        ndcg=math.fsum(1 / math.log2(rank + 1) for rank in found if rank <= k) / judged if judged else None,
    )
