"""Scores a table of generated answers against the examples that they answer."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from rag_eval_assets import progress
from rag_eval_assets.compute import Worker, map_batches
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.progress import Reporter
from rag_eval_assets.scoring.base import Advance, Pair, PairScore, Scorer
from rag_eval_assets.scoring.blocks import WINDOW_PAIRS
from rag_eval_assets.status import AnswerStatus, ScoreStatus

_BATCH_ROWS = WINDOW_PAIRS
"""Answers that are Python objects at one time; the more there are, the better texts of equal length fill a batch."""

EXAMPLES_READ = ["example_id", "reference_answer"]
"""Columns of `eval_examples` that scoring reads."""

ANSWERS_READ = ["example_id", "trial", "status", "answer"]
"""Columns of `generated_answers` that scoring reads."""

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
    references = _References(examples)
    references.require(answers)
    # What the tables were read with is not needed while a model is in memory.
    pa.default_memory_pool().release_unused()
    fitted = scorer.for_references(references.each(answers))
    with progress.stage(reporter, scorer.name, answers.num_rows, "pairs") as stage:
        worker = _worker(fitted, references, stage.advance)
        made = map_batches([answers.select(ANSWERS_READ)], lambda: worker, _BATCH_ROWS)
        return pa.concat_tables([scorer.spec.schema.empty_table(), *made])


class _References:
    """The reference answer of each answer. Texts stay in their table until a batch asks for its own."""

    def __init__(self, examples: pa.Table) -> None:
        self._ids: Any = examples["example_id"].combine_chunks()
        if pc.count_distinct(self._ids).as_py() != len(self._ids):
            twice = Counter(cast("list[str]", self._ids.to_pylist())).most_common(1)[0][0]
            raise InfrastructureError(f"eval_examples holds example_id {twice!r} more than once")
        self._texts = examples["reference_answer"]

    def of(self, answers: pa.Table) -> list[str | None]:
        """Those of a batch of answers, in its order."""
        return cast("list[str | None]", self._texts.take(self._rows(answers)).to_pylist())

    def each(self, answers: pa.Table) -> Iterator[str | None]:
        """Those of all answers, in their order."""
        for start in range(0, answers.num_rows, _BATCH_ROWS):
            yield from self.of(answers.slice(start, _BATCH_ROWS))

    def require(self, answers: pa.Table) -> None:
        """Refuse answers to examples that are not there."""
        rows = self._rows(answers)
        if rows.null_count:
            unknown: object = answers["example_id"].filter(rows.is_null())[0].as_py()
            raise InfrastructureError(
                f"generated_answers holds example_id {unknown!r}, which eval_examples does not",
                fix="Materialize generated_answers again after eval_examples",
            )

    def _rows(self, answers: pa.Table) -> Any:
        """Row of each answer's example; null where there is none."""
        return pc.index_in(answers["example_id"], value_set=self._ids)


def _worker(scorer: Scorer, references: _References, advance: Advance) -> Worker:
    def score(answers: pa.Table) -> pa.Table:
        rows = answers.to_pylist()
        scores = _score_answers(scorer, rows, references.of(answers), advance)
        made = [_row(answer, score) for answer, score in zip(rows, scores, strict=True)]
        return pa.Table.from_pylist(made, schema=scorer.spec.schema)

    return score


def _score_answers(
    scorer: Scorer, answers: list[dict[str, Any]], references: list[str | None], advance: Advance
) -> list[PairScore]:
    results = [_UNSCORED.get(AnswerStatus(answer["status"])) for answer in answers]
    advance(len(results) - results.count(None))
    pairs = [
        Pair(answer["answer"], (reference,), answer["example_id"])
        for answer, reference, result in zip(answers, references, results, strict=True)
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
