"""What is checked about what the numbers stand on: how much was scored, and whether the corpus holds the contexts."""

from __future__ import annotations

from typing import Any

from rag_eval_assets.evaluation.checks import WORST, CheckOutcome
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES, TableSpec

UNSCORABLE = frozenset({ScoreStatus.NO_REFERENCE, ScoreStatus.EMPTY_REFERENCE})
"""Rows that nothing can be compared with; they say nothing about the target or the scorer."""


def check_completeness(evaluation: Evaluation, spec: TableSpec, target: str) -> CheckOutcome:
    """Enough of the examples that have a reference answer have a score."""
    bound = evaluation.suite.suite.checks.completeness.at_least
    table = evaluation.store.read(evaluation.key(spec.name, target)).select(["example_id", "status"])
    rows: list[dict[str, Any]] = [row for row in table.to_pylist() if row["status"] not in UNSCORABLE]
    unscored = [str(row["example_id"]) for row in rows if row["status"] != ScoreStatus.SCORED]
    if not rows:
        return CheckOutcome(True, "no example has a reference answer", {"scorable": 0, "bound": bound})
    share = (len(rows) - len(unscored)) / len(rows)
    return CheckOutcome(
        share >= bound,
        f"{len(rows) - len(unscored)} of {len(rows)} examples with a reference have a score "
        f"({share:.1%}, bound {bound:.1%})",
        {"completeness": share, "bound": bound, "scorable": len(rows)},
        unscored[:WORST],
    )


def check_corpus_coverage(evaluation: Evaluation) -> CheckOutcome:
    """Enough of the ground-truth contexts are documents of the corpus: what is not there cannot be retrieved."""
    bound = evaluation.suite.suite.checks.corpus_coverage.at_least
    corpus = evaluation.store.read(evaluation.key(CORPUS.name))
    if not corpus.num_rows:
        return CheckOutcome(True, "the suite names no corpus", {"judged": 0, "bound": bound})
    documents = set(corpus.column("document_id").to_pylist())
    examples = evaluation.store.read(evaluation.key(EVAL_EXAMPLES.name)).select(["example_id", "context_id"])
    rows: list[dict[str, Any]] = [row for row in examples.to_pylist() if row["context_id"] is not None]
    if not rows:
        return CheckOutcome(True, "no example names the document of its context", {"judged": 0, "bound": bound})
    missing = [str(row["example_id"]) for row in rows if row["context_id"] not in documents]
    share = (len(rows) - len(missing)) / len(rows)
    return CheckOutcome(
        share >= bound,
        f"{len(rows) - len(missing)} of {len(rows)} contexts are in the corpus ({share:.1%}, bound {bound:.1%})",
        {"coverage": share, "bound": bound, "judged": len(rows)},
        missing[:WORST],
    )
