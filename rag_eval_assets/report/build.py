"""Builds the report of one target from the per-example table, the call log and what the run knows of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from rag_eval_assets.canonical import sequence_hash
from rag_eval_assets.report.aggregate import aggregate
from rag_eval_assets.report.examples import row_metrics
from rag_eval_assets.report.identity import report_content_hash
from rag_eval_assets.report.listing import hash_examples, list_examples
from rag_eval_assets.report.schema import (
    EXCLUDED_ROWS,
    Calls,
    Corpus,
    Dataset,
    Excluded,
    ExcludedRow,
    Gates,
    Host,
    InputTable,
    Latency,
    MeasuredAt,
    Model,
    Models,
    Report,
    Run,
    ScorerCalls,
)
from rag_eval_assets.report.schema_origin import Origin
from rag_eval_assets.report.statistics import percentiles
from rag_eval_assets.retrieval.matching import MatchSettings

CODE_VERSION = "2"
"""Raised whenever the same inputs would give a report with another `content_sha256`."""

MAX_EXAMPLES = 20_000
"""Default number of examples above which they stand in the Parquet alone."""

UNKNOWN_GENERATOR = "unknown"


@dataclass(frozen=True)
class DatasetFacts:
    """What the report says of the data set beside its rows.

    Attributes:
        name, split, revision: of the data sets.
        excluded: rows that are no example, each with `source`, `row` and `reason`.
        sample: how the examples were limited; None where all were asked.
    """

    name: str
    split: str | None = None
    revision: str | None = None
    excluded: Sequence[Mapping[str, Any]] = ()
    sample: str | None = None


@dataclass(frozen=True)
class RunFacts:
    """What may differ between two runs of equal inputs.

    Attributes:
        run_date: the partition, YYYY-MM-DD.
        dagster_run_id: of the run that builds the report.
        env: the environment's label.
        host: `host.host_facts()`.
        seconds: by stage.
        scorer_calls: by scorer that calls a service.
        versions: `host.package_versions()`.
        inputs: per table, which version of it went in.
        origin: the suite.
    """

    run_date: str
    dagster_run_id: str | None
    env: str
    host: Host
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    scorer_calls: Mapping[str, ScorerCalls] = field(default_factory=dict[str, ScorerCalls])
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: Mapping[str, InputTable] = field(default_factory=dict[str, InputTable])
    origin: Origin | None = None


@dataclass(frozen=True)
class ReportInputs:
    """Everything that goes into a report.

    Attributes:
        run_id: UUID of this evaluation of one target.
        timestamp: now, with a time zone.
        suite, target: their names.
        dataset: facts of the data set.
        rows: the per-example table (`examples.example_rows`).
        call_log: schema `tables.CALL_LOG`.
        settings: the matching rule that was used.
        run: facts of the run.
        corpus: what the target retrieves from, where the suite knows.
        models: what scored, under `bertscore`, `sentence_transformer` or a further scorer's name: fields of
            `schema.Model`.
        gates: outcome of the suite's conditions.
        notes: what a reader must know to judge the numbers, such as that retriever and scorer share a model.
        max_examples: above so many examples the report lists none.
    """

    run_id: str
    timestamp: datetime
    suite: str
    target: str
    dataset: DatasetFacts
    rows: pa.Table
    call_log: pa.Table
    settings: MatchSettings
    run: RunFacts
    corpus: Corpus | None = None
    models: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict[str, Mapping[str, Any] | None])
    gates: Gates = field(default_factory=Gates)
    notes: Sequence[str] = ()
    max_examples: int = MAX_EXAMPLES


def build_report(inputs: ReportInputs) -> Report:
    """Build the report; `examples_table` is filled in when it is written (`write.write_report`).

    Raises:
        pydantic.ValidationError: a fact is not of its type, or a number is not finite.
    """
    rows = inputs.rows
    totals = aggregate(rows, row_metrics(rows), inputs.settings)
    truncated = rows.num_rows > inputs.max_examples
    listed = [] if truncated else list(list_examples(rows))
    as_json = (example.model_dump(mode="json") for example in (list_examples(rows) if truncated else listed))
    report = Report(
        run_id=inputs.run_id,
        timestamp=inputs.timestamp,
        measured_at=_measured_at(inputs.call_log, inputs.run.run_date),
        suite=inputs.suite,
        target=inputs.target,
        dataset=_dataset(inputs.dataset, rows),
        corpus=inputs.corpus,
        models=_models(inputs.models, rows),
        counts=totals.counts,
        retrieval_summary=totals.retrieval,
        answer_similarity_summary=totals.similarity,
        gates=inputs.gates,
        notes=list(inputs.notes),
        content_sha256="0" * 64,
        run=_run(inputs),
        examples_truncated=truncated,
        examples_sha256=hash_examples(as_json),
        examples_table=None,
        examples=listed,
    )
    return report.model_copy(update={"content_sha256": report_content_hash(report.to_json())})


def _dataset(facts: DatasetFacts, rows: pa.Table) -> Dataset:
    excluded = [
        ExcludedRow(source=row["source"], row=row["row"], reason=row["reason"])
        for row in facts.excluded[:EXCLUDED_ROWS]
    ]
    return Dataset(
        name=facts.name,
        split=facts.split,
        n_examples=rows.num_rows,
        excluded=Excluded(count=len(facts.excluded), rows=excluded),
        revision=facts.revision,
        fingerprint=sequence_hash(str(row) for row in rows["row_sha256"].to_pylist()),
        sample=facts.sample,
    )


def _models(models: Mapping[str, Mapping[str, Any] | None], rows: pa.Table) -> Models:
    generators = sorted({str(name) for name in rows["generator"].to_pylist() if name is not None})
    described = {
        name: None if facts is None else Model.model_validate(facts)
        for name, facts in {"bertscore": None, "sentence_transformer": None, **models}.items()
    }
    generator = generators if len(generators) > 1 else next(iter(generators), UNKNOWN_GENERATOR)
    return Models.model_validate({"generator": generator, **described})


def _measured_at(call_log: pa.Table, run_date: str) -> MeasuredAt:
    moments: list[datetime] = [moment for moment in call_log["answered_at"].to_pylist() if moment is not None]
    if not moments:
        return MeasuredAt(first=None, last=None, days_after_run_date=None)
    last = max(moments)
    days = (last.date() - date.fromisoformat(run_date)).days
    return MeasuredAt(first=min(moments), last=last, days_after_run_date=days)


def _run(inputs: ReportInputs) -> Run:
    facts = inputs.run
    origins: list[str | None] = inputs.call_log["origin"].to_pylist()
    latencies = [float(value) for value in inputs.call_log["latency_ms"].to_pylist() if value is not None]
    p50, p90, p99 = percentiles(latencies, (50, 90, 99)) if latencies else (None, None, None)
    return Run(
        run_date=facts.run_date,
        dagster_run_id=facts.dagster_run_id,
        env=facts.env,
        seconds=dict(facts.seconds),
        latency_ms=Latency(p50=p50, p90=p90, p99=p99),
        calls=Calls(
            live=origins.count("live"),
            journal=origins.count("journal"),
            replayed=origins.count("replayed"),
            recorded=sum(map(bool, inputs.call_log["recorded"].to_pylist())),
            missing=origins.count("missing"),
            kept=origins.count("kept"),
        ),
        scorer_calls=dict(facts.scorer_calls),
        host=facts.host,
        versions=dict(facts.versions),
        inputs=dict(facts.inputs),
        origin=facts.origin,
    )
