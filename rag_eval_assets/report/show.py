"""A report as a compact summary for the terminal; texts of others are shown on one line and can steer nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rag_eval_assets.report.schema import MetricSummary, Report, RetrievalSummary
from rag_eval_assets.report.schema_example import Example
from rag_eval_assets.terminal import sanitize

LOWEST = 5
"""Examples shown."""

_DASH = "-"


def render(report: Report) -> RenderableType:
    """What `rag-eval report show` prints: identity, counts, retrieval, scores, and the lowest scoring examples."""
    parts: list[RenderableType] = [_identity(report), _counts(report), _retrieval(report.retrieval_summary)]
    parts.append(_scores(report.answer_similarity_summary.metrics()))
    parts += [Text(f"Note: {sanitize(note)}") for note in report.notes]
    days = report.measured_at.days_after_run_date
    if days is not None and days > 1:
        parts.append(
            Text(f"Note: answers were generated {days} days after the run date; they measure that day's system")
        )
    lowest = lowest_examples(report.examples)
    if lowest:
        parts.append(_examples(lowest))
    elif report.examples_truncated:
        parts.append(Text("Examples stand in the Parquet beside the report."))
    return Group(*parts)


def lowest_examples(examples: Sequence[Example], count: int = LOWEST) -> list[tuple[float, Example]]:
    """The scored examples with the lowest score, lowest first: BERTScore F1, or sentence cosine where there is none."""
    scored = [(score, example) for example in examples if (score := _score(example)) is not None]
    return sorted(scored, key=lambda pair: pair[0])[:count]


def _score(example: Example) -> float | None:
    scores = example.answer_similarity
    return scores.bertscore.f1 if scores.bertscore is not None else scores.sentence_cosine


def _identity(report: Report) -> Text:
    split = f" {report.dataset.split}" if report.dataset.split else ""
    sample = f", {report.dataset.sample}" if report.dataset.sample else ""
    line = f"{report.suite} / {report.target}  {report.run.run_date}  {report.dataset.name}{split}{sample}"
    return Text(f"{sanitize(line)}\nrun {report.run_id}  content {report.content_sha256[:12]}")


def _counts(report: Report) -> Text:
    counts, excluded = report.counts, report.dataset.excluded.count
    line = (
        f"{counts.attempted} asked: {counts.answered} answered, {counts.empty} empty, "
        f"{counts.invalid_text} invalid text, {counts.errored} errors"
    )
    return Text(f"{line}; {excluded} rows excluded" if excluded else line)


def _retrieval(summary: RetrievalSummary) -> Text:
    rate = f"{_number(summary.top_k_match_rate)} {_interval(summary.top_k_match_rate_ci95)}"
    return Text(
        f"retrieval: top-{summary.k} match {rate} ({summary.n_matched} of {summary.n_judged} judged), "
        f"MRR {_number(summary.mrr)}, nDCG@{summary.k} {_number(summary.ndcg_k)}"
    )


def _scores(metrics: dict[str, MetricSummary]) -> Table:
    table = Table("score", box=None, pad_edge=False)
    for name in ("mean", "95 % interval", "p10", "p50", "p90", "scored"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, summary in metrics.items():
        numbers = (summary.p10, summary.p50, summary.p90)
        table.add_row(
            Text(sanitize(name)),
            _number(summary.mean),
            Text(_interval(summary.ci95)),
            *[_number(value) for value in numbers],
            f"{summary.n_scored} of {summary.attempted}",
        )
    return table


def _examples(lowest: Sequence[tuple[float, Example]]) -> Table:
    table = Table(title="lowest scores", title_justify="left", box=None, pad_edge=False, expand=True)
    table.add_column("score", justify="right", no_wrap=True)
    for name, ratio in (("id", 1), ("question", 3), ("answer", 3)):
        table.add_column(name, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for score, example in lowest:
        texts = (example.id, example.question, example.generated_answer or "")
        table.add_row(_number(score), *[Text(sanitize(text.strip())) for text in texts])
    return table


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.4f}"


def _interval(interval: Sequence[float] | None) -> str:
    return _DASH if interval is None else f"[{interval[0]:.4f}, {interval[1]:.4f}]"
