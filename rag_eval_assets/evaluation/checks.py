"""What is checked about a table after it was written, read back from the store as any other reader would read it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.reporting import DELIVERY, EVAL_REPORT
from rag_eval_assets.report.spool import receipts
from rag_eval_assets.scoring.base import value_names
from rag_eval_assets.status import AnswerStatus, ScoreStatus
from rag_eval_assets.tables import EVAL_EXAMPLES, GENERATED_ANSWERS, TableSpec
from rag_eval_assets.wording import counted, counted_doing

RANGE_SLACK = 1e-6
"""Rounding in single precision may put a cosine of equal texts this far above 1."""

WORST = 10


@dataclass(frozen=True)
class CheckOutcome:
    """Whether a check passed, in one sentence, with the figures and the ids behind it."""

    passed: bool
    summary: str
    figures: dict[str, float] = field(default_factory=dict[str, float])
    worst: list[str] = field(default_factory=list[str])


def check_contract(evaluation: Evaluation, spec: TableSpec, target: str | None) -> CheckOutcome:
    """The table has its declared schema, unique keys, no null where none may be, and a row for every example."""
    table = evaluation.store.read(evaluation.key(spec.name, target))
    faults, worst = [*_schema_faults(table, spec), *_null_faults(table, spec)], list[str]()
    names = [name for name in ("example_id", "document_id") if name in table.schema.names]
    if not faults and names:
        key = [*names[:1], *(["trial"] if "trial" in table.schema.names else [])]
        rows = Counter(tuple(row.values()) for row in table.select(key).to_pylist())
        twice = [str(row[0]) for row, count in rows.items() if count > 1]
        if twice:
            figures: dict[str, float] = {"twice": len(twice), "bound": 0}
            said = f"{counted_doing(len(twice), 'key', 'stands', 'stand')} more than once"
            return CheckOutcome(False, said, figures, twice[:WORST])
        if spec.name != EVAL_EXAMPLES.name and names[0] == "example_id":
            faults, worst = _differences_from_examples(evaluation, {str(row[0]) for row in rows})
    if faults:
        return CheckOutcome(False, "; ".join(faults), {"faults": len(faults), "bound": 0}, worst)
    return CheckOutcome(
        True, f"{counted(table.num_rows, 'row')} as declared", {"rows": table.num_rows, "faults": 0, "bound": 0}
    )


def check_error_rate(evaluation: Evaluation, target: str) -> CheckOutcome:
    """Few of the calls to the target failed."""
    bound = evaluation.suite.suite.checks.error_rate.at_most
    key = evaluation.key(GENERATED_ANSWERS.name, target)
    rows: list[dict[str, Any]] = evaluation.store.read(key, ["example_id", "status", "error"]).to_pylist()
    failed = [row for row in rows if row["status"] == AnswerStatus.ERROR]
    rate = len(failed) / max(len(rows), 1)
    return CheckOutcome(
        rate <= bound,
        f"{len(failed)} of {len(rows)} calls failed ({rate:.1%}, bound {bound:.1%})",
        {"error_rate": rate, "bound": bound},
        [str(row["example_id"]) for row in failed[:WORST]],
    )


def check_scores(evaluation: Evaluation, spec: TableSpec, target: str) -> CheckOutcome:
    """Every scored row has finite values in range, every other row has none, and the scorer failed on no row."""
    key = evaluation.key(spec.name, target)
    table = evaluation.store.read(key)
    names = list(value_names(spec))
    # (x - b) / (1 - b) of a cosine x is at most 1 too, but far below -1 where the baseline b is high.
    lowest = -math.inf if evaluation.store.provenance(key).facts["scorer"].get("rescaled") else -1 - RANGE_SLACK
    bad = [str(row["example_id"]) for row in table.to_pylist() if not _is_sound(row, names, lowest)]
    return CheckOutcome(
        not bad,
        f"{len(bad)} of {table.num_rows} rows have values that do not fit their status or range"
        if bad
        else f"{counted(table.num_rows, 'row')} sound",
        {"unsound": len(bad), "bound": 0},
        bad[:WORST],
    )


def check_gates(evaluation: Evaluation, target: str) -> CheckOutcome:
    """The conditions that the suite sets are met, such as that every answer passes every threshold."""
    outcome = str(evaluation.store.read(evaluation.key(EVAL_REPORT, target)).column("gate_outcome")[0])
    said = {"none": "the suite sets no condition", "pass": "met", "fail": "not met; the report says which"}
    return CheckOutcome(outcome != "fail", said[outcome])


def check_delivery(evaluation: Evaluation, target: str) -> CheckOutcome:
    """The date's newest report lies in its bucket.

    Raises:
        InfrastructureError: it does not: then the run fails, though its tables are good and its history is written.
    """
    pointer, provenance = evaluation.store.read_with_provenance(evaluation.key(EVAL_REPORT, target))
    delivery: dict[str, Any] = provenance.facts.get(DELIVERY, {})
    run_id = str(pointer.column("run_id")[0])
    if delivery.get("problem") and run_id not in receipts(evaluation.home):  # it may have been pushed since
        raise InfrastructureError(f"report {run_id} was not delivered: {delivery['problem']}")
    return CheckOutcome(True, f"{delivery.get('report') or 'pushed later'}")


def _schema_faults(table: pa.Table, spec: TableSpec) -> list[str]:
    declared = {column.name: column.dtype for column in spec.columns}
    found = dict(zip(table.schema.names, table.schema.types, strict=True))
    missing = [f"column {name!r} is missing" for name in declared if name not in found]
    extra = [f"column {name!r} is not declared" for name in found if name not in declared]
    other = [
        f"column {name!r} is {found[name]}, not {dtype}"
        for name, dtype in declared.items()
        if name in found and found[name] != dtype
    ]
    return [*missing, *extra, *other]


def _null_faults(table: pa.Table, spec: TableSpec) -> list[str]:
    required = [column.name for column in spec.columns if not column.nullable and column.name in table.schema.names]
    return [f"column {name!r} holds nulls" for name in required if table.column(name).null_count]


def _differences_from_examples(evaluation: Evaluation, ids: set[str]) -> tuple[list[str], list[str]]:
    """What is wrong with the examples that a table has rows of, and the first ids that it is wrong with."""
    examples = evaluation.store.read(evaluation.key(EVAL_EXAMPLES.name), ["example_id"])
    expected = {str(example_id) for example_id in examples.column("example_id").to_pylist()}
    missing, unknown = sorted(expected - ids), sorted(ids - expected)
    faults = [
        f"{counted_doing(len(missing), 'example', 'has', 'have')} no row",
        f"{counted_doing(len(unknown), 'row', 'has', 'have')} no example",
    ]
    told = [fault for fault, there in zip(faults, (missing, unknown), strict=True) if there]
    return told, [*missing, *unknown][:WORST]


def _is_sound(row: dict[str, Any], names: list[str], lowest: float) -> bool:
    values: list[float | None] = [row[name] for name in names]
    if row["status"] == ScoreStatus.SCORED:
        return all(v is not None and math.isfinite(v) and lowest <= v <= 1 + RANGE_SLACK for v in values)
    return row["status"] != ScoreStatus.SCORER_ERROR and all(value is None for value in values)
