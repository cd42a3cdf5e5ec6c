"""A report's figures as a Markdown table, for an asset's page; none of the texts that were evaluated stand in it."""

from __future__ import annotations

from rag_eval_assets.report.schema import Interval, Report
from rag_eval_assets.report.statistics import MIN_ROWS
from rag_eval_assets.report.words import remarks


def summary_markdown(report: Report) -> str:
    """Counts, retrieval and scores of one report as Markdown."""
    counts, retrieval = report.counts, report.retrieval_summary
    figures = [
        (f"top-{retrieval.k} match rate", retrieval.top_k_match_rate, retrieval.top_k_match_rate_ci95),
        *[
            (f"{name} (mean)", metric.mean, metric.ci95)
            for name, metric in report.answer_similarity_summary.metrics().items()
        ],
    ]
    rows = [_row(*figure) for figure in figures]
    rows.insert(1, _row("mean reciprocal rank", retrieval.mrr, None))
    head = (
        f"**{counts.attempted}** asked, {counts.answered} answered, {counts.empty} empty, "
        f"{counts.invalid_text} invalid text, {counts.errored} errors; {retrieval.n_judged} judged for retrieval"
    )
    few = any(value is not None and interval is None for _, value, interval in figures)
    no_interval = [f"> Below {MIN_ROWS} examples a figure has no interval."] if few else []
    notes = [*no_interval, *(f"> {note}" for note in remarks(report))]
    return "\n".join([head, "", "| figure | value | 95 % interval |", "| --- | ---: | ---: |", *rows, "", *notes])


def _row(name: str, value: float | None, interval: Interval | None) -> str:
    between = f"{interval[0]:.4f} to {interval[1]:.4f}" if interval else ""
    return f"| {name} | {'' if value is None else f'{value:.4f}'} | {between} |"
