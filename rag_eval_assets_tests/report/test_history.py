"""The line that a report leaves in the history."""

from __future__ import annotations

import datetime as dt

from rag_eval_assets.report.history import history_row
from rag_eval_assets.tables import SCORE_HISTORY


def test_the_line_holds_what_trends_need(report) -> None:
    table = history_row(report, "qa/eval-runs/2026/03/01/x.json")
    assert table.schema.equals(SCORE_HISTORY.schema, check_metadata=True)
    row = table.to_pylist()[0]
    assert (row["run_id"], row["run_date"], row["report"]) == (
        report.run_id,
        "2026-03-01",
        "qa/eval-runs/2026/03/01/x.json",
    )
    assert row["measured_at"] == dt.datetime(2026, 3, 2, 12, 0, 5, tzinfo=dt.UTC)
    assert (row["n_examples"], row["n_errors"], row["gate_outcome"]) == (6, 1, "none")
    assert row["bertscore_f1_mean"] == report.answer_similarity_summary.bertscore_f1.mean
    assert row["top_k_match_rate"] == 1 / 3
