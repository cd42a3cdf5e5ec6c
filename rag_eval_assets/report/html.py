"""A report as one HTML page for people: figures first, then question, reference and answer side by side.

The page holds no script and asks nobody for anything; it can be opened from a folder or sent by mail.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import pyarrow as pa

from rag_eval_assets.report import words
from rag_eval_assets.report.schema import MetricSummary, Report, RetrievalSummary
from rag_eval_assets.report.schema_example import Example
from rag_eval_assets.report.show import lowest_examples
from rag_eval_assets.report.statistics import MIN_ROWS
from rag_eval_assets.retrieval.metrics import HIT_RATE_CUTOFFS
from rag_eval_assets.wording import counted

if TYPE_CHECKING:
    from jinja2 import Template

SHOWN = 200
"""Examples on the page, lowest scores first after those without a score; all stand in JSON and Parquet."""

EXCLUDED_SHOWN = 10
"""Excluded rows that are named on the page; all are counted."""

BINS = 20
"""Bars of a histogram, over [-1, 1] for scores that can be negative and [0, 1] where none is."""

# What HTML cannot hold: control characters but tab, line feed and carriage return, and lone surrogates.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


CONTEXT_CHARACTERS = 2_000
"""Of each expected context on the page; the whole of it stands in the Parquet."""


def report_html(report: Report, rows: pa.Table | None = None) -> str:
    """The page. Equal reports over equal rows give equal pages.

    Args:
        report: the report.
        rows: the per-example table, from which the expected contexts come; the JSON has none.
    """
    examples = _shown(report)
    return _template().render(
        report=report,
        metrics=report.answer_similarity_summary.metrics(),
        histograms={name: histogram(values) for name, values in main_values(report).items()},
        examples=examples,
        contexts={} if rows is None else _contexts(rows, examples),
        hit_rates=_hit_rates(report.retrieval_summary),
        words=words,
        counted=counted,
        excluded_shown=EXCLUDED_SHOWN,
        omitted=report.counts.attempted - len(examples),
    )


def histogram(values: list[float]) -> list[tuple[float, float, int]]:
    """Bars as (from, to, count): `BINS` equal parts of [0, 1], or of [-1, 1] where a value is negative."""
    low = -1.0 if any(value < 0 for value in values) else 0.0
    width = (1.0 - low) / BINS
    counts = [0] * BINS
    for value in values:
        # Rounding may put a value a little outside; it belongs to the last bar.
        counts[max(0, min(BINS - 1, int((value - low) / width)))] += 1
    return [(low + place * width, low + (place + 1) * width, count) for place, count in enumerate(counts)]


def _hit_rates(summary: RetrievalSummary) -> list[tuple[int, float | None]]:
    """Cutoff and hit rate; cutoffs beyond the suite's `retrieval.k` have none and are left out."""
    return [(cutoff, getattr(summary, f"hit_rate_{cutoff}")) for cutoff in HIT_RATE_CUTOFFS if cutoff <= summary.k]


def _shown(report: Report) -> list[Example]:
    scored = [example for _, example in lowest_examples(report.examples, len(report.examples))]
    with_score = {example.id for example in scored}
    unscored = [example for example in report.examples if example.id not in with_score]
    return [*unscored, *scored][:SHOWN]


def _contexts(rows: pa.Table, examples: list[Example]) -> dict[str, str]:
    """Example id to the beginning of the expected context, of the examples that are shown and have one."""
    shown = {example.id for example in examples}
    places = [(place, name) for place, name in enumerate(rows["example_id"].to_pylist()) if name in shown]
    texts = rows["context"].take(pa.array([place for place, _ in places], pa.int64())).to_pylist()
    return {name: _cut(text) for (_, name), text in zip(places, texts, strict=True) if text is not None}


def _cut(text: str) -> str:
    return text if len(text) <= CONTEXT_CHARACTERS else f"{text[:CONTEXT_CHARACTERS]}…"


def main_values(report: Report) -> dict[str, list[float]]:
    """The main scores and those of further scorers, each with its values over the examples that are listed.

    A score without any value is left out.
    """
    f1 = [example.answer_similarity.bertscore.f1 for example in report.examples if example.answer_similarity.bertscore]
    cosine = [
        example.answer_similarity.sentence_cosine
        for example in report.examples
        if example.answer_similarity.sentence_cosine is not None
    ]
    further: dict[str, list[float]] = {}
    for example in report.examples:
        for name, value in (example.answer_similarity.__pydantic_extra__ or {}).items():
            if value is not None:
                further.setdefault(name, []).append(value)
    return {
        name: values for name, values in {"bertscore_f1": f1, "sentence_cosine": cosine, **further}.items() if values
    }


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"  # noqa: RUF001 - an en dash stands for "none" in tables


def _interval(metric: MetricSummary) -> str:
    return f"{metric.ci95[0]:.4f} to {metric.ci95[1]:.4f}" if metric.ci95 else f"none below {MIN_ROWS}"


def _printable(text: str | None) -> str:
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text or "")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=_number, interval=_interval, printable=_printable)
    source = resources.files("rag_eval_assets.report") / "page.html.j2"
    return environment.from_string(source.read_text(encoding="utf-8"))
