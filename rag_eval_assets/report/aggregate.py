"""The summaries of a report, computed from the per-example table and nothing else; `recompute` does just that again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rag_eval_assets.report.schema import (
    AnswerSimilaritySummary,
    Counts,
    Matching,
    MetricSummary,
    RetrievalSummary,
)
from rag_eval_assets.report.statistics import bca_interval, mean, percentiles, sample_std, wilson_interval
from rag_eval_assets.retrieval.matching import MatchSettings
from rag_eval_assets.retrieval.metrics import rank_metrics
from rag_eval_assets.status import AnswerStatus, MatchStatus, ScoreStatus

REQUIRED_METRICS = {
    "bertscore_f1": "bertscore",
    "bertscore_precision": "bertscore",
    "bertscore_recall": "bertscore",
    "sentence_cosine": "sentence_cosine",
}
"""Metrics whose summaries always stand, with their scorers."""

NO_SCORER = "no_scorer"
"""Status of every example under a required metric whose scorer the suite does not use."""

_NO_REFERENCE = (ScoreStatus.NO_REFERENCE, ScoreStatus.EMPTY_REFERENCE)
_ERRORED = (ScoreStatus.TARGET_ERROR, ScoreStatus.SCORER_ERROR)


@dataclass(frozen=True)
class Aggregates:
    """All that a report says over all examples."""

    counts: Counts
    retrieval: RetrievalSummary
    similarity: AnswerSimilaritySummary


def aggregate(rows: pa.Table, metrics: Mapping[str, str], settings: MatchSettings) -> Aggregates:
    """Summarize the per-example table.

    Args:
        rows: a row per example. Read are `status`, `retrieval_status`, `retrieval_method`, `rank`, and per metric its
            column and its scorer's `<scorer>_status` and `<scorer>_truncated`, and `<scorer>_passed` where it judges.
        metrics: metric columns and the scorer of each (`examples.row_metrics`).
        settings: the matching rule that was used; it gives k.
    """
    summaries = {
        name: _metric(rows, name, metrics[name]) if name in metrics else _absent(rows.num_rows, scorer)
        for name, scorer in {**REQUIRED_METRICS, **metrics}.items()
    }
    return Aggregates(
        counts=_counts(rows),
        retrieval=_retrieval(rows, settings),
        similarity=AnswerSimilaritySummary.model_validate(summaries),
    )


def _counts(rows: pa.Table) -> Counts:
    statuses = Counter(_strings(rows, "status"))
    unanswered = {status: statuses[status] for status in (AnswerStatus.EMPTY, AnswerStatus.INVALID_TEXT)}
    errored = statuses[AnswerStatus.ERROR]
    return Counts(
        attempted=rows.num_rows,
        answered=rows.num_rows - errored - sum(unanswered.values()),
        empty=unanswered[AnswerStatus.EMPTY],
        invalid_text=unanswered[AnswerStatus.INVALID_TEXT],
        errored=errored,
    )


def _retrieval(rows: pa.Table, settings: MatchSettings) -> RetrievalSummary:
    statuses = _strings(rows, "retrieval_status")
    judged = [status == MatchStatus.JUDGED for status in statuses]
    ranks: list[int | None] = [rank for rank, counts in zip(rows["rank"].to_pylist(), judged, strict=True) if counts]
    methods: list[str | None] = rows["retrieval_method"].to_pylist()
    numbers = rank_metrics(ranks, settings.k)
    return RetrievalSummary(
        top_k_match_rate=numbers.top_k_match_rate,
        top_k_match_rate_ci95=wilson_interval(numbers.n_matched, numbers.n_judged),
        k=settings.k,
        hit_rate_1=numbers.hit_rate[1],
        hit_rate_3=numbers.hit_rate[3],
        hit_rate_5=numbers.hit_rate[5],
        hit_rate_10=numbers.hit_rate[10],
        mrr=numbers.mrr,
        ndcg_k=numbers.ndcg,
        n_judged=numbers.n_judged,
        n_matched=numbers.n_matched,
        matching=Matching(
            match_by=settings.match_by,
            min_words=settings.min_words,
            max_length_ratio=settings.max_length_ratio,
            ngram=settings.ngram,
            ngram_threshold=settings.ngram_threshold,
            methods=_tally(method for method in methods if method is not None),
            statuses=_tally(statuses),
        ),
    )


def _metric(rows: pa.Table, name: str, scorer: str) -> MetricSummary:
    column: list[float | None] = rows[name].to_pylist()
    statuses = _strings(rows, f"{scorer}_status")
    truncated = rows[f"{scorer}_truncated"].to_pylist()
    scored = [status == ScoreStatus.SCORED for status in statuses]
    values = [value for value, counts in zip(column, scored, strict=True) if counts and value is not None]
    unscored = _tally(status for status in statuses if status != ScoreStatus.SCORED)
    asked = rows.num_rows - unscored.get(ScoreStatus.TARGET_ERROR, 0)
    return MetricSummary(
        scorer=scorer,
        **_statistics(values),
        mean_with_failures_as_zero=mean([*values, *[0.0] * (asked - len(values))]) if asked else None,
        **_passes(rows, scorer),
        attempted=rows.num_rows,
        n_scored=len(values),
        n_truncated=sum(bool(cut) and counts for cut, counts in zip(truncated, scored, strict=True)),
        errored=sum(unscored.get(status, 0) for status in _ERRORED),
        no_reference=sum(unscored.get(status, 0) for status in _NO_REFERENCE),
        unscored_by_status=unscored,
    )


def _passes(rows: pa.Table, scorer: str) -> dict[str, Any]:
    """Passed and the share of all examples, those whose call failed included; null of a scorer without threshold."""
    if f"{scorer}_passed" not in rows.schema.names:
        return {"n_passed": None, "pass_rate": None}
    passed = sum(map(bool, rows[f"{scorer}_passed"].to_pylist()))
    return {"n_passed": passed, "pass_rate": passed / rows.num_rows if rows.num_rows else None}


def _absent(attempted: int, scorer: str) -> MetricSummary:
    return MetricSummary(
        scorer=scorer,
        **_statistics([]),
        mean_with_failures_as_zero=None,
        attempted=attempted,
        n_scored=0,
        n_truncated=0,
        errored=0,
        no_reference=0,
        unscored_by_status={NO_SCORER: attempted} if attempted else {},
    )


def _statistics(values: list[float]) -> dict[str, Any]:
    if not values:
        return dict.fromkeys(("mean", "p10", "p50", "p90", "std", "min", "max", "ci95"))
    p10, p50, p90 = percentiles(values, (10, 50, 90))
    return {
        "mean": mean(values),
        "p10": p10,
        "p50": p50,
        "p90": p90,
        "std": sample_std(values),
        "min": min(values),
        "max": max(values),
        "ci95": bca_interval(values),
    }


def _strings(rows: pa.Table, name: str) -> list[str]:
    return [str(value) for value in rows[name].to_pylist()]


def _tally(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))
