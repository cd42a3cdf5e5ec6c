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
from rag_eval_assets.storage.store import TableKey
from rag_eval_assets.tables import EVAL_EXAMPLES, GENERATED_ANSWERS, TableSpec

ERROR_RATE_BOUND = 0.05
"""Share of failed calls above which a warning is given: one in twenty is more than a service's usual noise."""

DRIFT_BOUND = 0.05
"""Fall of a mean or rate against the last comparable date above which a warning is given."""

DRIFT_METRICS = ("top_k_match_rate", "mrr", "bertscore_f1_mean", "sentence_cosine_mean")

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
    faults = [*_schema_faults(table, spec), *_null_faults(table, spec)]
    names = [name for name in ("example_id", "document_id") if name in table.schema.names]
    if not faults and names:
        key = [*names[:1], *(["trial"] if "trial" in table.schema.names else [])]
        rows = Counter(tuple(row.values()) for row in table.select(key).to_pylist())
        twice = [str(row[0]) for row, count in rows.items() if count > 1]
        if twice:
            return CheckOutcome(False, f"{len(twice)} keys stand more than once", {"twice": len(twice)}, twice[:WORST])
        if spec.name != EVAL_EXAMPLES.name and names[0] == "example_id":
            faults.extend(_missing_examples(evaluation, [str(row[0]) for row in rows]))
    if faults:
        return CheckOutcome(False, "; ".join(faults), {"faults": len(faults)})
    return CheckOutcome(True, f"{table.num_rows} rows as declared", {"rows": table.num_rows})


def check_error_rate(evaluation: Evaluation, target: str) -> CheckOutcome:
    """At most 5 % of the calls to the target failed."""
    key = evaluation.key(GENERATED_ANSWERS.name, target)
    rows: list[dict[str, Any]] = evaluation.store.read(key, ["example_id", "status", "error"]).to_pylist()
    failed = [row for row in rows if row["status"] == AnswerStatus.ERROR]
    rate = len(failed) / max(len(rows), 1)
    return CheckOutcome(
        rate <= ERROR_RATE_BOUND,
        f"{len(failed)} of {len(rows)} calls failed ({rate:.1%}, bound {ERROR_RATE_BOUND:.0%})",
        {"error_rate": rate, "bound": ERROR_RATE_BOUND},
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
        else f"{table.num_rows} rows sound",
        {"unsound": len(bad)},
        bad[:WORST],
    )


def check_drift(evaluation: Evaluation, target: str) -> CheckOutcome:
    """No mean fell by more than 0.05 against the newest earlier run date with the same data set."""
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
    fallen = [f"{name} by {fall:.4f}" for name, fall in falls.items() if fall > DRIFT_BOUND]
    against = f"against {earlier['run_date']}"
    return CheckOutcome(
        not fallen,
        f"{', '.join(fallen)} fell {against}" if fallen else f"nothing fell by more than {DRIFT_BOUND} {against}",
        {**{f"{name}_fall": fall for name, fall in falls.items()}, "bound": DRIFT_BOUND},
    )


def check_gates(evaluation: Evaluation, target: str) -> CheckOutcome:
    """The conditions that the suite sets are met, such as that every answer passes every threshold."""
    outcome = str(_report_line(evaluation.key(EVAL_REPORT, target), evaluation)["gate_outcome"])
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


def _missing_examples(evaluation: Evaluation, ids: list[str]) -> list[str]:
    examples = evaluation.store.read(evaluation.key(EVAL_EXAMPLES.name), ["example_id"])
    expected = {str(example_id) for example_id in examples.column("example_id").to_pylist()}
    missing, unknown = expected - set(ids), set(ids) - expected
    faults = [f"{len(missing)} examples have no row" if missing else "", f"{len(unknown)} rows have no example"]
    return [fault for fault, there in zip(faults, (missing, unknown), strict=True) if there]


def _is_sound(row: dict[str, Any], names: list[str], lowest: float) -> bool:
    values: list[float | None] = [row[name] for name in names]
    if row["status"] == ScoreStatus.SCORED:
        return all(v is not None and math.isfinite(v) and lowest <= v <= 1 + RANGE_SLACK for v in values)
    return row["status"] != ScoreStatus.SCORER_ERROR and all(value is None for value in values)


def _newest_earlier(evaluation: Evaluation, target: str, fingerprint: str) -> dict[str, Any] | None:
    here = evaluation.key(EVAL_REPORT, target)
    dates = evaluation.store.run_dates(here)
    for run_date in sorted((date for date in dates if date < evaluation.run_date), reverse=True):
        line = _report_line(TableKey(here.suite, here.table, run_date, here.target), evaluation)
        if line["dataset_fingerprint"] == fingerprint:
            return line
    return None


def _report_line(key: TableKey, evaluation: Evaluation) -> dict[str, Any]:
    return evaluation.store.read(key).to_pylist()[0]
