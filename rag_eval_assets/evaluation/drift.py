"""Whether a date's means fell against the newest earlier date over the same data set, and through which examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.checks import WORST, CheckOutcome
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.reporting import EVAL_REPORT
from rag_eval_assets.storage.store import TableKey
from rag_eval_assets.tables import BERTSCORE, RETRIEVAL_MATCHES, SENTENCE_COSINE

COLUMNS: dict[str, tuple[str, str]] = {
    "top_k_match_rate": (RETRIEVAL_MATCHES.name, "top_k_match"),
    "mrr": (RETRIEVAL_MATCHES.name, "rank"),
    "bertscore_f1_mean": (BERTSCORE.name, "f1"),
    "sentence_cosine_mean": (SENTENCE_COSINE.name, "cosine"),
}
"""Compared mean to the table and column that it is the mean of."""

DRIFT_METRICS = tuple(COLUMNS)


def check_drift(evaluation: Evaluation, target: str) -> CheckOutcome:
    """No mean fell by more than the bound against the newest earlier run date with the same data set."""
    bound = evaluation.suite.suite.checks.drift.at_most
    if evaluation.is_sample:
        return CheckOutcome(True, "a sample is not compared")
    now = _report_line(evaluation.key(EVAL_REPORT, target), evaluation)
    earlier = _newest_earlier(evaluation, target, now["dataset_fingerprint"])
    if earlier is None:
        return CheckOutcome(True, "no earlier run date has the same data set")
    falls = {
        name: float(earlier[name]) - float(now[name])
        for name in DRIFT_METRICS
        if earlier[name] is not None and now[name] is not None
    }
    fallen = [f"{name} by {fall:.4f}" for name, fall in falls.items() if fall > bound]
    against = f"against {earlier['run_date']}"
    return CheckOutcome(
        not fallen,
        f"{', '.join(fallen)} fell {against}" if fallen else f"nothing fell by more than {bound:g} {against}",
        {**{f"{name}_fall": fall for name, fall in falls.items()}, "bound": bound},
        _fell_most(evaluation, target, str(earlier["run_date"]), max(falls, key=lambda n: falls[n])) if fallen else [],
    )


def _fell_most(evaluation: Evaluation, target: str, earlier: str, metric: str) -> list[str]:
    """The examples through which the mean fell that fell most, the worst first; none where a table is gone."""
    table, column = COLUMNS[metric]
    here = evaluation.key(table, target)
    try:
        before, now = (_values(evaluation, key, column) for key in (replace(here, run_date=earlier), here))
    except InfrastructureError:
        return []
    falls = {key: before[key] - now[key] for key in before.keys() & now.keys()}
    ranked = sorted((key for key in falls if falls[key] > 0), key=lambda key: (-falls[key], key))
    return list(dict.fromkeys(example_id for example_id, _ in ranked))[:WORST]


def _values(evaluation: Evaluation, key: TableKey, column: str) -> dict[tuple[str, int], float]:
    """Value of each row that has one, by example and trial; of a rank its reciprocal, 0 where judged and not found."""
    found: dict[tuple[str, int], float] = {}
    for row in evaluation.store.read(key).to_pylist():
        value = row[column]
        if column == "rank":
            value = None if row["top_k_match"] is None else (1 / value if value else 0.0)
        if value is not None:
            found[str(row["example_id"]), int(row["trial"])] = float(value)
    return found


def _newest_earlier(evaluation: Evaluation, target: str, fingerprint: str) -> dict[str, Any] | None:
    here = evaluation.key(EVAL_REPORT, target)
    dates = evaluation.store.run_dates(here)
    for run_date in sorted((date for date in dates if date < evaluation.run_date), reverse=True):
        line = _report_line(replace(here, run_date=run_date), evaluation)
        if line["dataset_fingerprint"] == fingerprint:
            return line
    return None


def _report_line(key: TableKey, evaluation: Evaluation) -> dict[str, Any]:
    return evaluation.store.read(key).to_pylist()[0]
