"""The last stages: one report per target from its tables, and its line in the history."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.configuration import FACT, configuration_hash
from rag_eval_assets.evaluation.context import Evaluation, Outcome
from rag_eval_assets.evaluation.destination import destination
from rag_eval_assets.evaluation.origin import origin
from rag_eval_assets.evaluation.publishing import send, write_home
from rag_eval_assets.evaluation.stages import match_settings
from rag_eval_assets.report import build as build_module
from rag_eval_assets.report.build import DatasetFacts, ReportInputs, RunFacts, build_report
from rag_eval_assets.report.chart import as_markdown, score_chart
from rag_eval_assets.report.examples import example_rows
from rag_eval_assets.report.gates import judge_policy
from rag_eval_assets.report.history import history_row
from rag_eval_assets.report.host import host_facts, package_versions
from rag_eval_assets.report.html import main_values
from rag_eval_assets.report.markdown import summary_markdown
from rag_eval_assets.report.schema import Corpus, InputTable, Report, ScorerCalls
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.storage.store import Provenance, TableKey, data_version
from rag_eval_assets.suite.scorers import LocalScorer
from rag_eval_assets.suite.targets import EmbeddedTarget, ShellTarget
from rag_eval_assets.tables import (
    CALL_LOG,
    CORPUS,
    EVAL_EXAMPLES,
    GENERATED_ANSWERS,
    RETRIEVAL_MATCHES,
    SCORE_HISTORY,
    scorer_calls_table,
)
from rag_eval_assets.targets.registry import target_models

EVAL_REPORT = "eval_report"
"""The asset's name; its table holds one row that points to the newest report of the date."""

DELIVERY = "delivery"
"""Key of the pointer's provenance that says whether the report reached its bucket."""

HISTORY_CODE_VERSION = "1"
"""Raised whenever the same report would leave another line in `score_history`."""

CHARTED_DATES = 60
"""Run dates in the chart of an asset's page: two months of daily runs."""

CHARTED_FIGURES = ("bertscore_f1_mean", "sentence_cosine_mean", "top_k_match_rate")

RUN_ID_NAMESPACE = uuid.UUID("8a3cf5a0-6d1e-5b0e-9a62-0f3f4f0f2d11")
"""Fixed for ever: report ids are uuid5 in it, so that re-delivering a report keeps its id."""


@dataclass(frozen=True)
class Materialized:
    """How one input table came to be, as the orchestrator knows: which run made it, when, in how many seconds."""

    run_id: str
    at: dt.datetime
    seconds: float | None = None


@dataclass(frozen=True)
class RunIdentity:
    """Who builds the report.

    Attributes:
        run_id: id of the orchestrator's run.
        inputs: table name to how it came to be; what is not known is left out.
    """

    run_id: str
    inputs: Mapping[str, Materialized] = field(default_factory=dict[str, Materialized])


@dataclass(frozen=True)
class _Tables:
    """All inputs of a report, with their versions."""

    examples: pa.Table
    answers: pa.Table
    call_log: pa.Table
    matches: pa.Table
    scores: dict[str, pa.Table]
    calls: dict[str, pa.Table]
    provenance: dict[str, Provenance]
    versions: dict[str, str]


def report_run_id(run_id: str, evaluation: Evaluation, target: str) -> str:
    """UUID of the report that the orchestrator's run `run_id` makes of one target and run date."""
    slug = evaluation.suite.target_slugs[target]
    return str(uuid.uuid5(RUN_ID_NAMESPACE, f"{run_id}/{evaluation.namespace}/{slug}/{evaluation.run_date}"))


def make_report(evaluation: Evaluation, target: str, identity: RunIdentity) -> tuple[Outcome, WrittenReport]:
    """The evaluation report of one target: a JSON file, its per-example Parquet, and a pointer to them in the store."""
    tables = _read_tables(evaluation, target)
    rows = example_rows(tables.examples, tables.answers, tables.matches, tables.scores)
    where = destination(evaluation.suite)
    report = build_report(_report_inputs(evaluation, target, identity, tables, rows, where.env))
    written, parcel = send(evaluation, where, write_home(evaluation, where, report, rows))
    # A retried step finds the report of its first try on the disk, and the pointer must tell of that one.
    line = history_row(written.report, f"{written.key}.json")
    delivery = {} if where.bucket is None else {DELIVERY: {"report": written.uri, "problem": written.problem}}
    provenance = Provenance(build_module.CODE_VERSION, tables.versions, facts=delivery)
    stored = evaluation.store.write(evaluation.key(EVAL_REPORT, target), line, provenance)
    if parcel is not None:
        parcel.remove()  # not before the pointer: the retry of a step that failed in between finds its own report
    counts = report.counts.model_dump()
    notes = {"report": written.place}
    if written.problem:
        notes["not delivered"] = written.problem
    summary = f"{summary_markdown(report)}\n\n{_chart(evaluation, target, report)}"
    outcome = Outcome(stored, counts, _report_metrics(report), notes=notes, summary=summary)
    return outcome, written


def _chart(evaluation: Evaluation, target: str, report: Report) -> str:
    """The report's scores and, unless it is a sample, the figures of all run dates, as a picture in Markdown."""
    here = evaluation.key(EVAL_REPORT, target)
    dates = [evaluation.run_date] if evaluation.is_sample else evaluation.store.run_dates(here)[-CHARTED_DATES:]
    trend: dict[str, dict[str, float | None]] = {}
    for date in dates:
        line = evaluation.store.read(replace(here, run_date=date)).to_pylist()[0]
        trend[date] = {name.removesuffix("_mean"): line[name] for name in CHARTED_FIGURES}
    return as_markdown(score_chart(main_values(report), trend), "scores")


def make_history(evaluation: Evaluation, target: str) -> Outcome | None:
    """One line per report ever written, for trends. A sample leaves none."""
    if evaluation.is_sample:
        return None
    line = evaluation.store.read(evaluation.key(EVAL_REPORT, target))
    run_id = str(line.column("run_id").to_pylist()[0])
    key = evaluation.key(SCORE_HISTORY.name, target)
    provenance = Provenance(HISTORY_CODE_VERSION, {EVAL_REPORT: data_version(line)})
    stored = evaluation.store.write(TableKey(key.suite, key.table, key.run_date, key.target, run_id), line, provenance)
    return Outcome(stored, {"reports": 1})


def _read_tables(evaluation: Evaluation, target: str) -> _Tables:
    store = evaluation.store
    shared = {CORPUS.name: None, EVAL_EXAMPLES.name: None}
    scorers = [scorer.name for scorer in evaluation.suite.suite.scorers]
    calling = [scorer.name for scorer in evaluation.suite.suite.scorers if not isinstance(scorer, LocalScorer)]
    called = {name: evaluation.key(scorer_calls_table(name).name, target) for name in calling}
    own = dict.fromkeys((GENERATED_ANSWERS.name, CALL_LOG.name, RETRIEVAL_MATCHES.name, *scorers), target)
    keys = {name: evaluation.key(name, owner) for name, owner in {**shared, **own}.items()}
    read = {name: store.read_with_provenance(key) for name, key in keys.items()}
    tables = {name: table for name, (table, _) in read.items()}
    provenance = {name: made_from for name, (_, made_from) in read.items()}
    versions = {name: data_version(table) for name, table in tables.items() if name != CALL_LOG.name}
    for name in (GENERATED_ANSWERS.name, RETRIEVAL_MATCHES.name, *scorers):
        if provenance[name].facts.get(FACT) != configuration_hash(evaluation.suite, name, target):
            raise InfrastructureError(
                f"table {name!r} of {evaluation.run_date} was made with other settings than the suite has now",
                fix=f"Materialize {name!r} again, and then what is downstream of it",
            )
    for name, made_from in provenance.items():
        for used, version in made_from.inputs.items():
            if used in versions and versions[used] != version:
                raise InfrastructureError(
                    f"table {name!r} of {evaluation.run_date} was made from another version of {used!r}",
                    fix=f"Materialize {name!r} again, so that the report does not mix two evaluations",
                )
    return _Tables(
        tables[EVAL_EXAMPLES.name],
        tables[GENERATED_ANSWERS.name],
        tables[CALL_LOG.name],
        tables[RETRIEVAL_MATCHES.name],
        {name: tables[name] for name in scorers},
        {name: store.read(key) for name, key in called.items() if store.exists(key)},
        provenance,
        versions,
    )


def _report_inputs(
    evaluation: Evaluation, target: str, identity: RunIdentity, tables: _Tables, rows: pa.Table, env: str
) -> ReportInputs:
    suite = evaluation.suite.suite
    facts = tables.provenance[EVAL_EXAMPLES.name].facts
    corpus = tables.provenance[CORPUS.name].facts
    limited = f"the first {rows.num_rows} of {facts['total']} examples" if evaluation.is_sample else None
    sample = "; ".join(filter(None, (facts["selection"], limited))) or None
    return ReportInputs(
        run_id=report_run_id(identity.run_id, evaluation, target),
        timestamp=dt.datetime.now(dt.UTC),
        suite=evaluation.namespace if evaluation.is_sample else evaluation.suite.name,
        target=target,
        dataset=DatasetFacts(facts["name"], facts["split"], facts["revision"], facts["excluded"], sample),
        rows=rows,
        call_log=tables.call_log,
        settings=match_settings(evaluation.suite),
        run=_run_facts(evaluation, identity, tables, env),
        corpus=Corpus(fingerprint=corpus["fingerprint"], documents=corpus["documents"]),
        models=_models(evaluation, tables),
        gates=judge_policy(rows, suite.policy),
        notes=_notes(evaluation, target),
        max_examples=suite.report.max_examples,
    )


def _run_facts(evaluation: Evaluation, identity: RunIdentity, tables: _Tables, env: str) -> RunFacts:
    inputs: dict[str, InputTable] = {}
    for name, version in tables.versions.items():
        made = identity.inputs.get(name)
        inputs[name] = InputTable(
            dagster_run_id=made.run_id if made else None,
            materialized_at=made.at if made else None,
            data_version=version,
            code_version=tables.provenance[name].code_version,
        )
    seconds = {name: made.seconds for name, made in identity.inputs.items() if made.seconds is not None}
    return RunFacts(
        run_date=evaluation.run_date,
        dagster_run_id=identity.run_id,
        env=env,
        host=host_facts(),
        seconds=seconds,
        scorer_calls={name: ScorerCalls.model_validate(row.to_pylist()[0]) for name, row in tables.calls.items()},
        versions=package_versions(),
        inputs=inputs,
        origin=origin(evaluation.suite, evaluation.limit),
    )


def _models(evaluation: Evaluation, tables: _Tables) -> dict[str, dict[str, Any]]:
    """The scorers' own descriptions, taken from the tables that they made: what really scored."""
    named = {"sentence_cosine": "sentence_transformer"}
    scorers = [scorer.name for scorer in evaluation.suite.suite.scorers]
    return {named.get(name, name): dict(tables.provenance[name].facts["scorer"]) for name in scorers}


def _notes(evaluation: Evaluation, target: str) -> list[str]:
    notes: list[str] = []
    config = evaluation.suite.suite.targets[target]
    if isinstance(config, ShellTarget):
        notes.append("This target is a command, whose answers are never recorded: they are unreplayable.")
    fault = config.planted_fault if isinstance(config, EmbeddedTarget) else None
    if fault is not None:
        notes.append(f"This target is broken on purpose ({fault.replace('_', ' ')}), to show which figures notice.")
    retrieving = set(target_models(evaluation.suite, target))
    scoring = {scorer.model for scorer in evaluation.suite.suite.scorers if isinstance(scorer, LocalScorer)}
    shared = sorted(retrieving & scoring)
    if not shared:
        return notes
    return [
        *notes,
        f"The target retrieves and the scorers score with the same model ({', '.join(shared)}): it prefers what it "
        "finds similar itself, so these scores flatter the target.",
    ]


def _report_metrics(report: Report) -> dict[str, float]:
    summary = report.retrieval_summary
    found: dict[str, float | None] = {
        "n_examples": report.counts.attempted,
        "n_errors": report.counts.errored,
        "top_k_match_rate": summary.top_k_match_rate,
        "mrr": summary.mrr,
        **{f"{name}_mean": metric.mean for name, metric in report.answer_similarity_summary.metrics().items()},
    }
    return {name: float(value) for name, value in found.items() if value is not None}
