"""The line that a report leaves in `score_history`."""

from __future__ import annotations

import pyarrow as pa

from rag_eval_assets.report.schema import Report
from rag_eval_assets.tables import SCORE_HISTORY


def history_row(report: Report, report_key: str) -> pa.Table:
    """One row, schema `tables.SCORE_HISTORY`.

    Args:
        report: the report.
        report_key: where it lies, relative to the report folder.
    """
    similarity = report.answer_similarity_summary
    row = {
        "run_id": report.run_id,
        "run_date": report.run.run_date,
        "timestamp": report.timestamp,
        "measured_at": report.measured_at.last,
        "dataset_fingerprint": report.dataset.fingerprint,
        "content_sha256": report.content_sha256,
        "n_examples": report.counts.attempted,
        "n_errors": report.counts.errored,
        "top_k_match_rate": report.retrieval_summary.top_k_match_rate,
        "mrr": report.retrieval_summary.mrr,
        "bertscore_f1_mean": similarity.bertscore_f1.mean,
        "sentence_cosine_mean": similarity.sentence_cosine.mean,
        "gate_outcome": report.gates.outcome,
        "report": report_key,
    }
    return pa.Table.from_pylist([row], schema=SCORE_HISTORY.schema)
