"""The conditions that a suite sets, judged on the per-example table."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from rag_eval_assets.report.examples import row_metrics
from rag_eval_assets.report.schema import GateResult, Gates
from rag_eval_assets.status import AnswerStatus

ALL_PASS = "all_pass"

_NAMED = 5
"""Examples that a reason names."""


def judge_policy(rows: pa.Table, policy: Literal["report", "all_pass"]) -> Gates:
    """Under `all_pass`, whether every example was answered and passes every threshold, as EvalCore demands."""
    if policy != ALL_PASS:
        return Gates()
    failing = failing_examples(rows)
    named = ", ".join(failing[:_NAMED]) + (", ..." if len(failing) > _NAMED else "")
    total = rows.num_rows
    result = GateResult(
        name=ALL_PASS,
        outcome="fail" if failing or not total else "pass",
        value=(total - len(failing)) / total if total else None,
        threshold=1.0,
        reason=f"{len(failing)} of {total} examples do not pass: {named}" if failing else None,
    )
    return Gates(outcome=result.outcome, results=[result])


def failing_examples(rows: pa.Table) -> list[str]:
    """Ids of the examples whose call failed or that miss a threshold, in the data set's order."""
    judging = [f"{scorer}_passed" for scorer in dict.fromkeys(row_metrics(rows).values())]
    columns = [name for name in judging if name in rows.schema.names]
    return [
        str(row["example_id"])
        for row in rows.select(["example_id", "status", *columns]).to_pylist()
        if row["status"] == AnswerStatus.ERROR or not all(row[name] for name in columns)
    ]
