"""The per-example table as the report's `examples`, and the hash over them."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import pyarrow as pa

from rag_eval_assets.canonical import canonical_json, sequence_hash
from rag_eval_assets.report.examples import VERDICT_COLUMNS, row_metrics
from rag_eval_assets.report.schema_example import (
    TEXT_CHARACTERS,
    AnswerSimilarity,
    Example,
    Retrieval,
    Retrieved,
    Usage,
    Verdict,
)

_BATCH_ROWS = 64  # rows of contexts and passages in memory as Python strings
BERTSCORE_PARTS = {"bertscore_precision": "precision", "bertscore_recall": "recall", "bertscore_f1": "f1"}
"""Metrics that stand together under `answer_similarity.bertscore`, and their names there."""


def list_examples(rows: pa.Table) -> Generator[Example]:
    """The entries of `examples`, one per row of the per-example table."""
    metrics = row_metrics(rows)
    scorers = list(dict.fromkeys(metrics.values()))
    wanted = rows.select([name for name in rows.schema.names if name != "context"])
    for batch in wanted.to_batches(max_chunksize=_BATCH_ROWS):
        for row in batch.to_pylist():
            yield _example(row, metrics, scorers)


def hash_examples(examples: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 over the examples as canonical JSON, one a line, in their order."""
    return sequence_hash(canonical_json(example).decode("utf-8") for example in examples)


def _example(row: dict[str, Any], metrics: Mapping[str, str], scorers: list[str]) -> Example:
    bertscore = {short: row.get(name) for name, short in BERTSCORE_PARTS.items()}
    return Example(
        id=row["example_id"],
        question=row["question"],
        reference_answer=row["reference_answer"],
        generated_answer=row["answer"],
        retrieval=Retrieval(
            top_k_match=row["top_k_match"],
            rank=row["rank"],
            status=row["retrieval_status"],
            method=row["retrieval_method"],
        ),
        answer_similarity=AnswerSimilarity.model_validate(
            {
                "bertscore": None if None in bertscore.values() else bertscore,
                "sentence_cosine": row.get("sentence_cosine"),
                **{name: row[name] for name in metrics if name not in BERTSCORE_PARTS},
            }
        ),
        status=row["status"],
        score_status={scorer: row[f"{scorer}_status"] for scorer in scorers},
        score_detail={s: row[f"{s}_detail"] for s in scorers if row[f"{s}_detail"] is not None},
        truncated=[scorer for scorer in scorers if row[f"{scorer}_truncated"]],
        error=row["error"],
        usage=Usage(input_tokens=row["input_tokens"], output_tokens=row["output_tokens"]),
        cost_usd=_finite(row["cost_usd"]),
        row_sha256=row["row_sha256"],
        retrieved=_retrieved(row["passages"], row["matched"]),
        scores=[verdict for scorer in scorers if (verdict := _verdict(row, scorer)) is not None],
        trials=None,
    )


def _verdict(row: dict[str, Any], scorer: str) -> Verdict | None:
    """The verdict of a scorer with a threshold; None of others, and where there was no answer to judge."""
    if row.get(f"{scorer}_passed") is None:
        return None
    return Verdict(scorer=scorer, **{name: row[f"{scorer}_{name}"] for name in VERDICT_COLUMNS})


def _retrieved(passages: list[dict[str, Any]] | None, matched: list[bool] | None) -> list[Retrieved] | None:
    if passages is None:
        return None
    return [
        Retrieved(
            id=passage["id"],
            document_id=passage["document_id"],
            rank=position + 1,
            score=_finite(passage["score"]),
            matched=matched[position] if matched is not None and position < len(matched) else None,
            text=None if passage["text"] is None else passage["text"][:TEXT_CHARACTERS],
        )
        for position, passage in enumerate(passages)
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
