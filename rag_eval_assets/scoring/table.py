"""Scores a table of generated answers against the examples that they answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import pyarrow as pa

from rag_eval_assets import progress
from rag_eval_assets.compute import Worker, map_batches
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.progress import Reporter
from rag_eval_assets.scoring.base import Advance, Pair, PairScore, Scorer
from rag_eval_assets.status import AnswerStatus, ScoreStatus

_BATCH_ROWS = 4096
"""Answers that are Python objects at one time; the more there are, the better texts of equal length fill a batch."""

_COLUMNS = ["example_id", "trial", "status", "answer"]

_UNSCORED = {
    AnswerStatus.ERROR: PairScore(ScoreStatus.TARGET_ERROR),
    AnswerStatus.INVALID_TEXT: PairScore(ScoreStatus.INVALID_TEXT),
}
"""Answers that hold nothing to score, whatever their text column says."""


def score_table(scorer: Scorer, examples: pa.Table, answers: pa.Table, reporter: Reporter) -> pa.Table:
    """Score each answer against the reference answer of its example.

    Args:
        scorer: the metric.
        examples: an `eval_examples` table.
        answers: a `generated_answers` table.
        reporter: is told about progress.

    Returns:
        A table of `scorer.spec`: one row per row of `answers`, in that order.

    Raises:
        InfrastructureError: an answer belongs to no example, or two examples share an id.
        ConfigurationError: the scorer's model cannot be used.
    """
    references = _references(examples)
    _require_known(answers, references)
    fitted = scorer.for_references(references[str(name)] for name in answers["example_id"].to_pylist())
    with progress.stage(reporter, scorer.name, answers.num_rows, "pairs") as stage:
        worker = _worker(fitted, references, stage.advance)
        made = map_batches([answers.select(_COLUMNS)], lambda: worker, _BATCH_ROWS)
        return pa.concat_tables([scorer.spec.schema.empty_table(), *made])


def _worker(scorer: Scorer, references: Mapping[str, str | None], advance: Advance) -> Worker:
    def score(answers: pa.Table) -> pa.Table:
        rows = answers.to_pylist()
        scores = _score_answers(scorer, rows, references, advance)
        made = [_row(answer, score) for answer, score in zip(rows, scores, strict=True)]
        return pa.Table.from_pylist(made, schema=scorer.spec.schema)

    return score


def _score_answers(
    scorer: Scorer, answers: list[dict[str, Any]], references: Mapping[str, str | None], advance: Advance
) -> list[PairScore]:
    results = [_UNSCORED.get(AnswerStatus(answer["status"])) for answer in answers]
    advance(len(results) - results.count(None))
    pairs = [
        Pair(answer["answer"], (references[answer["example_id"]],), answer["example_id"])
        for answer, result in zip(answers, results, strict=True)
        if result is None
    ]
    scores = iter(scorer.score_pairs(pairs, advance))
    return [result if result is not None else next(scores) for result in results]


def _row(answer: Mapping[str, Any], score: PairScore) -> dict[str, Any]:
    return {
        "example_id": answer["example_id"],
        "trial": answer["trial"],
        "status": score.status.value,
        "detail": score.detail,
        "truncated": score.truncated,
        **(score.values or {}),
        **(asdict(score.verdict) if score.verdict else {}),
    }


def _references(examples: pa.Table) -> dict[str, str | None]:
    ids = cast("list[str]", examples["example_id"].to_pylist())
    references = dict(zip(ids, examples["reference_answer"].to_pylist(), strict=True))
    if len(references) != len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise InfrastructureError(f"eval_examples holds example_id {twice!r} more than once")
    return references


def _require_known(answers: pa.Table, references: Mapping[str, str | None]) -> None:
    for example_id in answers["example_id"].to_pylist():
        if example_id not in references:
            raise InfrastructureError(
                f"generated_answers holds example_id {example_id!r}, which eval_examples does not",
                fix="Materialize generated_answers again after eval_examples",
            )
