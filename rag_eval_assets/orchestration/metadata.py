"""What Dagster shows of a table: its columns and where they come from, its counts, a preview."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import dagster as dg

from rag_eval_assets.evaluation.context import Outcome
from rag_eval_assets.tables import SCORE_HISTORY, TableSpec

SAMPLE = "sample"
"""Metadata key that only materializations of samples have; its value says what was evaluated."""

SAMPLE_COST = "sample_cost"
"""Metadata key of a sample's bytes and seconds."""

_ANSWER_AND_REFERENCE = (("generated_answers", "answer"), ("eval_examples", "reference_answer"))
_ROW_KEY = {
    "example_id": (("generated_answers", "example_id"),),
    "trial": (("generated_answers", "trial"),),
}

COLUMN_LINEAGE: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "generated_answers": {
        "example_id": (("eval_examples", "example_id"),),
        "answer": (("eval_examples", "question"), ("corpus", "text_sha256")),
        "passages": (("eval_examples", "question"), ("corpus", "text_sha256")),
    },
    "retrieval_matches": {
        **_ROW_KEY,
        "rank": (
            ("generated_answers", "passages"),
            ("eval_examples", "context"),
            ("eval_examples", "context_id"),
        ),
        "top_k_match": (("generated_answers", "passages"), ("eval_examples", "context")),
    },
    "bertscore": {**_ROW_KEY, **dict.fromkeys(("precision", "recall", "f1"), _ANSWER_AND_REFERENCE)},
    "sentence_cosine": {**_ROW_KEY, "cosine": _ANSWER_AND_REFERENCE},
    "eval_report": {
        "dataset_fingerprint": (("eval_examples", "row_sha256"),),
        "n_examples": (("eval_examples", "example_id"),),
        "n_errors": (("generated_answers", "status"),),
        "top_k_match_rate": (("retrieval_matches", "top_k_match"),),
        "mrr": (("retrieval_matches", "rank"),),
        "bertscore_f1_mean": (("bertscore", "f1"),),
        "sentence_cosine_mean": (("sentence_cosine", "cosine"),),
    },
    "score_history": {column.name: (("eval_report", column.name),) for column in SCORE_HISTORY.columns},
}
"""Table and column to the upstream columns that it is computed from."""


def definition_metadata(spec: TableSpec, keys: Mapping[str, dg.AssetKey]) -> dict[str, Any]:
    """Metadata that holds for every partition: grain, column schema, column lineage.

    Args:
        spec: the table.
        keys: asset keys of the tables upstream, by table name.
    """
    columns = [
        dg.TableColumn(
            name=column.name,
            type=str(column.dtype),
            description=column.description,
            constraints=dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in spec.columns
    ]
    lineage = {
        column: [dg.TableColumnDep(asset_key=keys[table], column_name=upstream) for table, upstream in deps]
        for column, deps in _lineage_of(spec).items()
        if all(table in keys for table, _ in deps)  # a report has no column of a scorer that its suite does not use
    }
    metadata: dict[str, Any] = {
        "grain": spec.grain,
        "dagster/column_schema": dg.TableSchema(columns=columns),
        "dagster/storage_kind": "parquet",
    }
    if lineage:
        metadata["dagster/column_lineage"] = dg.TableColumnLineage(deps_by_column=lineage)
    return metadata


def _lineage_of(spec: TableSpec) -> dict[str, tuple[tuple[str, str], ...]]:
    """Where a table's columns come from; a suite's own scorers have names that stand in no list."""
    if spec.name in COLUMN_LINEAGE:
        return COLUMN_LINEAGE[spec.name]
    judged = [column.name for column in spec.columns if column.name in ("similarity", "passed", "value", "reason")]
    return {**_ROW_KEY, **dict.fromkeys(judged, _ANSWER_AND_REFERENCE)} if judged else {}


def run_metadata(outcome: Outcome, seconds: float, *, sample: str | None) -> dict[str, Any]:
    """Metadata of one materialization in the order in which people read it: figures that plot over run dates, then how
    they came about, then what the table cost and where it is.

    A sample's numbers stand in one JSON value, since they would be plotted beside those of whole evaluations.
    """
    cost = {"bytes": outcome.stored.bytes, "seconds": round(seconds, 3)}
    shown: dict[str, Any] = {"summary": dg.MetadataValue.md(outcome.summary)} if outcome.summary else {}
    if sample is None:
        shown.update({name: _shown(value) for name, value in outcome.metrics.items() if math.isfinite(value)})
    shown["counts"] = dg.MetadataValue.json(outcome.counts)
    shown.update({name: dg.MetadataValue.text(text) for name, text in outcome.notes.items()})
    where = {"dagster/uri": outcome.stored.uri}
    if sample is not None:
        return {**shown, SAMPLE: dg.MetadataValue.text(sample), SAMPLE_COST: dg.MetadataValue.json(cost), **where}
    if outcome.preview:
        shown["preview"] = dg.MetadataValue.md(_markdown(outcome.preview))
    return {**shown, "dagster/partition_row_count": outcome.stored.rows, **cost, **where}


def _shown(value: float) -> float:
    """A number in the six digits that the page has room for; tables and reports have all of them."""
    return float(f"{value:.6g}") if abs(value) < 1e6 else float(value)


def is_sample(metadata: Mapping[str, dg.MetadataValue[Any]]) -> bool:
    """Whether a materialization's metadata is that of a sample."""
    return SAMPLE in metadata


def seconds_of(metadata: Mapping[str, dg.MetadataValue[Any]]) -> float | None:
    """The seconds that `run_metadata` put into a materialization's metadata; None where it holds none."""
    cost: Any = metadata[SAMPLE_COST].value if SAMPLE_COST in metadata else metadata
    seconds: Any = cost.get("seconds")
    value: Any = getattr(seconds, "value", seconds)
    return float(value) if isinstance(value, int | float) else None


def _markdown(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[_cell(row[name]) for name in names] for row in rows]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: object) -> str:
    """A value inside a Markdown table: no markup of its own, no line break, no border."""
    if value is None:
        return ""
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return text
