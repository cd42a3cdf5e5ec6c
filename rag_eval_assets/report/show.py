"""A report as a compact summary for the terminal; texts of others are shown on one line and can steer nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from rag_eval_assets.report.schema import MetricSummary, Report, RetrievalSummary
from rag_eval_assets.report.schema_example import Example
from rag_eval_assets.report.words import remarks
from rag_eval_assets.terminal import sanitize
from rag_eval_assets.wording import counted

LOWEST = 5
"""Examples shown."""

REASONS = 3
"""Reasons of failed calls shown."""

NARROW = 76
"""Terminals with fewer columns get the tables' main columns alone: a cut number is worse than none."""

_DASH = "-"


def render(report: Report) -> RenderableType:
    """What `rag-eval report show` prints: identity, counts, retrieval, scores, and the lowest scoring examples."""
    notes = remarks(report)
    lowest = lowest_examples(report.examples)
    parts: list[RenderableType] = [_identity(report), _counts(report), *_faults(report.examples)]
    parts += [_retrieval(report.retrieval_summary)]
    parts += ["", _Scores(report.answer_similarity_summary.metrics())]
    if notes:
        parts += ["", *[Text(f"Note: {sanitize(note)}") for note in notes]]
    if lowest:
        parts += ["", _Examples(lowest)]
    elif report.examples_truncated:
        parts += ["", "Examples stand in the Parquet beside the report."]
    return Group(*parts)


def lowest_examples(examples: Sequence[Example], count: int = LOWEST) -> list[tuple[float, Example]]:
    """The scored examples with the lowest score, lowest first: BERTScore F1, else sentence cosine, else another."""
    scored = [(score, example) for example in examples if (score := _score(example)) is not None]
    return sorted(scored, key=lambda pair: pair[0])[:count]


def _score(example: Example) -> float | None:
    scores = example.answer_similarity
    if scores.bertscore is not None:
        return scores.bertscore.f1
    further = (scores.__pydantic_extra__ or {}).values()
    return scores.sentence_cosine if scores.sentence_cosine is not None else next(iter(further), None)


def _identity(report: Report) -> Text:
    split = f" {report.dataset.split}" if report.dataset.split else ""
    sample = f", {report.dataset.sample}" if report.dataset.sample else ""
    line = f"{report.suite} / {report.target}  {report.run.run_date}  data set {report.dataset.name}{split}{sample}"
    return Text(f"{sanitize(line)}\nrun {report.run_id}  content {report.content_sha256[:12]}")


def _counts(report: Report) -> Text:
    counts, excluded = report.counts, report.dataset.excluded.count
    line = (
        f"{counts.attempted} asked: {counts.answered} answered, {counts.empty} empty, "
        f"{counts.invalid_text} invalid text, {counted(counts.errored, 'error')}"
    )
    return Text(f"{line}; {counted(excluded, 'row')} excluded" if excluded else line)


def _faults(examples: Sequence[Example]) -> list[Text]:
    """Why calls failed, the most frequent reasons first: a wrong pointer or key fails all rows for one reason."""
    reasons = Counter(example.error for example in examples if example.error)
    lines = [f"    {count} x {error}" for error, count in reasons.most_common(REASONS)]
    if len(reasons) > REASONS:
        lines.append(f"    and {counted(len(reasons) - REASONS, 'other reason')}")
    return [Text(sanitize(line)) for line in lines]


def _retrieval(summary: RetrievalSummary) -> Text:
    interval = summary.top_k_match_rate_ci95
    rate = _number(summary.top_k_match_rate) + (f" {_interval(interval)}" if interval is not None else "")
    return Text(
        f"retrieval: top-{summary.k} match {rate}, {summary.n_matched} of the {summary.n_judged} judged\n"
        f"           MRR {_number(summary.mrr)}, nDCG@{summary.k} {_number(summary.ndcg_k)}"
    )


@dataclass(frozen=True)
class _Scores:
    """The table of the summaries, in as many columns as there is room for."""

    metrics: dict[str, MetricSummary]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = ("mean", "scored") if options.max_width < NARROW else tuple(_COLUMNS)
        table = Table("score", box=None, pad_edge=False)
        for name in names:
            table.add_column(name, justify="right", no_wrap=True)
        for metric, summary in self.metrics.items():
            table.add_row(Text(sanitize(metric)), *[Text(_COLUMNS[name](summary)) for name in names])
        yield table


@dataclass(frozen=True)
class _Examples:
    """The table of the lowest scores; ids are never cut, since they are what one looks an example up by."""

    lowest: Sequence[tuple[float, Example]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        texts = ("question",) if options.max_width < NARROW else ("question", "answer")
        table = Table(title="lowest scores", title_justify="left", box=None, pad_edge=False, expand=True)
        table.add_column("score", justify="right", no_wrap=True)
        table.add_column("id", overflow="fold", max_width=options.max_width // 4)
        for name in texts:
            table.add_column(name, ratio=1, no_wrap=True, overflow="ellipsis")
        for score, example in self.lowest:
            shown = (example.id, example.question, example.generated_answer or "")[: 1 + len(texts)]
            table.add_row(_number(score), *[Text(sanitize(text.strip())) for text in shown])
        yield table


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.4f}"


def _interval(interval: Sequence[float] | None) -> str:
    return _DASH if interval is None else f"[{interval[0]:.4f}, {interval[1]:.4f}]"


_COLUMNS: dict[str, Callable[[MetricSummary], str]] = {
    "mean": lambda summary: _number(summary.mean),
    "95 % interval": lambda summary: _interval(summary.ci95),
    "p10": lambda summary: _number(summary.p10),
    "p50": lambda summary: _number(summary.p50),
    "p90": lambda summary: _number(summary.p90),
    "scored": lambda summary: f"{summary.n_scored}/{summary.attempted}",
}
"""Columns of the table of scores."""
