"""The table `retrieval_matches`: one judgement per generated answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.progress import SILENT, Reporter, stage
from rag_eval_assets.retrieval.matching import FoldedText, Match, MatchSettings, match_passages
from rag_eval_assets.status import AnswerStatus, MatchStatus
from rag_eval_assets.tables import RETRIEVAL_MATCHES

CODE_VERSION = "1"
"""Raised whenever the same tables would give other matches."""

_BATCH_ROWS = 1_000


def match_table(
    examples: pa.Table, answers: pa.Table, settings: MatchSettings, reporter: Reporter = SILENT
) -> pa.Table:
    """Judge every answer of a run.

    Args:
        examples: schema `tables.EVAL_EXAMPLES`.
        answers: schema `tables.GENERATED_ANSWERS`.
        settings: the matching rule.
        reporter: told about each row.

    Returns:
        Schema `tables.RETRIEVAL_MATCHES`, a row per row of `answers`, in their order.

    Raises:
        InfrastructureError: an answer belongs to no example.
    """
    positions = {example_id: row for row, example_id in enumerate(examples["example_id"].to_pylist())}
    contexts, context_ids = examples["context"], examples["context_id"]
    wanted = answers.select(["example_id", "trial", "status", "passages"])
    schema = RETRIEVAL_MATCHES.schema
    batches: list[pa.RecordBatch] = []
    # Trials of an example stand side by side, so one remembered context spares folding it again.
    last_id: str | None = None
    context: FoldedText | None = None
    with stage(reporter, "retrieval_matches", answers.num_rows, "answers") as running:
        for batch in wanted.to_batches(max_chunksize=_BATCH_ROWS):
            rows: list[dict[str, Any]] = []
            # Row by row: passages may be huge, and only one row of them should be in memory as Python strings.
            for row in range(batch.num_rows):
                answer: dict[str, Any] = batch.slice(row, 1).to_pylist()[0]
                example_id: str = answer["example_id"]
                if example_id not in positions:
                    raise InfrastructureError(
                        f"generated_answers holds example {example_id!r}, which eval_examples does not",
                        fix="Materialize both again, in that order",
                    )
                position = positions[example_id]
                if example_id != last_id:
                    text = contexts[position].as_py()
                    last_id, context = example_id, None if text is None else FoldedText(text)
                rows.append(_row(answer, context, context_ids[position].as_py(), settings))
                running.advance()
            batches.append(pa.RecordBatch.from_pylist(rows, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def _row(
    answer: dict[str, Any], context: FoldedText | None, context_id: str | None, settings: MatchSettings
) -> dict[str, Any]:
    passages = answer["passages"]
    if answer["status"] == AnswerStatus.ERROR:
        match = Match(MatchStatus.TARGET_ERROR, None, None, None, [])
    else:
        match = match_passages(context, context_id, passages, settings)
    judged = match.status is MatchStatus.JUDGED
    return {
        "example_id": answer["example_id"],
        "trial": answer["trial"],
        "status": match.status.value,
        "method": match.method,
        "retrieved": None if passages is None else len(passages),
        "rank": match.rank,
        "top_k_match": match.top_k_match,
        "matched": match.matched if judged else None,
    }
