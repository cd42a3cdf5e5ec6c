"""Computes a written report's summaries again from its examples and says where the file says otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pyarrow as pa

from rag_eval_assets.canonical import sequence_hash
from rag_eval_assets.errors import ConfigurationError, EvalError
from rag_eval_assets.report.aggregate import NO_SCORER, Aggregates, aggregate
from rag_eval_assets.report.examples import row_metrics
from rag_eval_assets.report.identity import report_content_hash
from rag_eval_assets.report.listing import BERTSCORE_PARTS, hash_examples, list_examples
from rag_eval_assets.report.read import load_report, parse_report, read_bytes
from rag_eval_assets.report.schema import SCHEMA_VERSION, Report
from rag_eval_assets.report.schema_example import Example
from rag_eval_assets.retrieval.matching import MatchSettings
from rag_eval_assets.storage.parquet import read_parquet


@dataclass(frozen=True)
class RecomputeResult:
    """What came of it.

    Attributes:
        equal: whether every summary, count and hash came out as the file says, to the last digit.
        differences: one line each: which field, what the file says, what its examples give.
    """

    equal: bool
    differences: list[str]


def recompute(path: str | Path) -> RecomputeResult:
    """Recompute a report from its `examples`, or from the Parquet beside it where those are truncated.

    Args:
        path: of the report, or its URI.

    Raises:
        ConfigurationError: the file is no report, or the Parquet that it needs is not beside it.
        InfrastructureError: the storage behind a URI cannot be read.
    """
    name = str(path).removeprefix("file://")
    stored = load_report(name)
    report = parse_report(stored, name.rsplit("/", 1)[-1])
    table = _Table.beside(name)
    differences = list(_table_differences(report, table))
    if report.examples_truncated:
        rows = table.rows()
        metrics = row_metrics(rows)
        row_hashes = [str(value) for value in rows["row_sha256"].to_pylist()]
        # A later minor version may list more per example than this release makes from the rows.
        comparable = report.schema_version == SCHEMA_VERSION
        examples_hash = hash_examples(e.model_dump(mode="json") for e in list_examples(rows)) if comparable else None
    else:
        metrics = _stored_metrics(report)
        summaries = report.answer_similarity_summary.metrics().values()
        judging = {summary.scorer for summary in summaries if summary.n_passed is not None}
        rows = _rows_from_examples(report.examples, metrics, judging)
        row_hashes = [example.row_sha256 for example in report.examples]
        examples_hash = hash_examples(stored["examples"])
    totals = aggregate(rows, metrics, _settings(report))
    differences += _differences("", _expected(totals, rows.num_rows, sequence_hash(row_hashes)), stored)
    if examples_hash is not None:
        differences += _differences("", {"examples_sha256": examples_hash}, stored)
    differences += _differences("", {"content_sha256": report_content_hash(stored)}, stored)
    return RecomputeResult(equal=not differences, differences=differences)


def _expected(totals: Aggregates, n_examples: int, fingerprint: str) -> dict[str, Any]:
    return {
        "dataset": {"n_examples": n_examples, "fingerprint": fingerprint},
        "counts": totals.counts.model_dump(mode="json"),
        "retrieval_summary": totals.retrieval.model_dump(mode="json"),
        "answer_similarity_summary": totals.similarity.model_dump(mode="json"),
    }


def _settings(report: Report) -> MatchSettings:
    declared = report.retrieval_summary.matching
    return MatchSettings(
        k=report.retrieval_summary.k,
        match_by=declared.match_by,
        min_words=declared.min_words,
        max_length_ratio=declared.max_length_ratio,
        ngram=declared.ngram,
        ngram_threshold=declared.ngram_threshold,
    )


def _stored_metrics(report: Report) -> dict[str, str]:
    """The metrics that some scorer computed, in the order of the summaries."""
    return {
        name: summary.scorer
        for name, summary in report.answer_similarity_summary.metrics().items()
        if NO_SCORER not in summary.unscored_by_status
    }


def _rows_from_examples(examples: list[Example], metrics: Mapping[str, str], judging: Set[str]) -> pa.Table:
    """The columns that `aggregate` reads, from the listed examples; `judging` are the scorers with a threshold."""
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "status": (pa.string(), [example.status for example in examples]),
        "retrieval_status": (pa.string(), [example.retrieval.status for example in examples]),
        "retrieval_method": (pa.string(), [example.retrieval.method for example in examples]),
        "rank": (pa.int32(), [example.retrieval.rank for example in examples]),
    }
    for scorer in dict.fromkeys(metrics.values()):
        columns[f"{scorer}_status"] = (pa.string(), [example.score_status.get(scorer) for example in examples])
        columns[f"{scorer}_truncated"] = (pa.bool_(), [scorer in example.truncated for example in examples])
        if scorer in judging:
            columns[f"{scorer}_passed"] = (pa.bool_(), [_passed(example, scorer) for example in examples])
    for name in metrics:
        columns[name] = (pa.float64(), [_score(example, name) for example in examples])
    schema = pa.schema([pa.field(name, dtype) for name, (dtype, _) in columns.items()])
    return pa.Table.from_pydict({name: values for name, (_, values) in columns.items()}, schema=schema)


def _passed(example: Example, scorer: str) -> bool | None:
    return next((verdict.passed for verdict in example.scores if verdict.scorer == scorer), None)


def _score(example: Example, name: str) -> float | None:
    scores = example.answer_similarity
    if name in BERTSCORE_PARTS:
        return None if scores.bertscore is None else getattr(scores.bertscore, BERTSCORE_PARTS[name])
    return scores.model_dump().get(name)


@dataclass(frozen=True)
class _Table:
    """The per-example table that lies beside a report: its file's name, and its bytes or why there are none."""

    name: str
    content: bytes | EvalError

    @classmethod
    def beside(cls, report: str) -> _Table:
        folder, slash, file = report.rpartition("/")
        name = str(PurePosixPath(file).with_suffix(".parquet"))
        try:
            return cls(name, read_bytes(f"{folder}{slash}{name}"))
        except EvalError as error:
            return cls(name, error)

    def rows(self) -> pa.Table:
        try:
            if isinstance(self.content, EvalError):
                raise self.content
            return read_parquet(pa.BufferReader(self.content))
        except (ConfigurationError, OSError, pa.ArrowException) as error:
            raise ConfigurationError(
                f"the report lists no examples and its table {self.name!r} cannot be read ({error})",
                fix="Copy the .parquet of the same name beside the .json",
            ) from error


def _table_differences(report: Report, table: _Table) -> Generator[str]:
    if report.examples_table is not None and isinstance(table.content, bytes):
        found = hashlib.sha256(table.content).hexdigest()
        if found != report.examples_table.sha256:
            yield f"examples_table.sha256: the report says {report.examples_table.sha256}, {table.name} has {found}"


def _differences(name: str, expected: Any, stored: Any) -> Generator[str]:
    """Where `stored` has another value than `expected`; fields that only `stored` has are not looked at."""
    if isinstance(expected, dict) and isinstance(stored, dict):
        entries, found = cast("dict[str, Any]", expected), cast("dict[str, Any]", stored)
        for key, value in entries.items():
            yield from _differences(f"{name}.{key}" if name else key, value, found.get(key))
    elif expected != stored:
        yield f"{name}: the report says {stored!r}, its examples give {expected!r}"
