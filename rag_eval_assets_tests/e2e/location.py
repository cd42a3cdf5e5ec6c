"""A code location for `test_live`: the project's own definitions, with a fault on one run date and cheap suites.

On one run date the examples of `quick` are broken while the file `fault` is there. While `hold` is there, its runs of
one date stop in the middle of the answers, and those of another in the middle of scoring. `tiny` is as it is; the other
suites have scorers that only compare words, so that a run costs no model, and but for `service`, which asks a real one,
targets that only write down what they are asked.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from rag_eval_assets.dataset.examples import ExampleSet
from rag_eval_assets.evaluation import reporting, stages
from rag_eval_assets.evaluation.context import Evaluation, Outcome
from rag_eval_assets.orchestration import lineage
from rag_eval_assets.scoring.registry import SCORERS
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.targets.base import Answer

FAULTY_DATE = "2026-04-04"
HELD_IN_ANSWERS, HELD_IN_SCORING = "2026-04-08", "2026-04-09"
HOLD_SECONDS = 600
FOLDER = Path(os.environ["RAG_EVAL_HOME"]).parent

_spec = importlib.util.spec_from_file_location("village", Path(__file__).parents[1] / "orchestration" / "conftest.py")
assert _spec is not None
assert _spec.loader is not None
village = sys.modules["village"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(village)

_make_examples, _load_examples, _make_answers = stages.make_examples, stages.load_examples, stages.make_answers
_open_target, _open_scorer, _model_needs = stages.open_target, stages.open_scorer, lineage.model_needs
_chart = reporting._chart
_asked_for = ""


class WritingDown(village.ScriptedTarget):
    """A target that appends each question, with its run date, to a file; the fourth may be held."""

    async def answer(self, question: str, trial: int) -> Answer:
        with (FOLDER / "calls.jsonl").open("a") as calls:
            calls.write(json.dumps({"date": _asked_for, "question": question}) + "\n")
        if len(self.calls) == 3 and _is_held(HELD_IN_ANSWERS):
            await asyncio.sleep(HOLD_SECONDS)
        return await super().answer(question, trial)


class Holding(village.WordOverlap):
    """Scores by common words, after it was held."""

    def score_pairs(self, pairs: Any, advance: Any) -> Any:
        if _is_held(HELD_IN_SCORING):
            (FOLDER / "scoring").touch()
            time.sleep(HOLD_SECONDS)
        return super().score_pairs(pairs, advance)


def _is_held(date: str) -> bool:
    return _asked_for == date and (FOLDER / "hold").exists()


def _make_broken(evaluation: Evaluation) -> Outcome:
    if evaluation.run_date == FAULTY_DATE and evaluation.suite.slug == "quick" and (FOLDER / "fault").exists():
        stages.load_examples = _load_twice
    try:
        return _make_examples(evaluation)
    finally:
        stages.load_examples = _load_examples


def _load_twice(suite: LoadedSuite, limit: int | None, **how: Any) -> ExampleSet:
    examples = _load_examples(suite, limit, **how)
    return dataclasses.replace(examples, table=pa.concat_tables([examples.table, examples.table]))


def _answers_for_a_date(evaluation: Evaluation, target: str) -> Outcome:
    global _asked_for  # noqa: PLW0603 - a target is not told the date
    _asked_for = evaluation.run_date
    return _make_answers(evaluation, target)


def _target(suite: LoadedSuite, name: str, *rest: Any) -> Any:
    return _open_target(suite, name, *rest) if suite.slug in ("tiny", "service") else WritingDown(name, {}, [])


def _draw(evaluation: Evaluation, *rest: Any) -> str:
    """The chart of a report; drawing takes a fifth of a run that loads no model."""
    return _chart(evaluation, *rest) if evaluation.suite.slug == "tiny" else ""


@contextmanager
def _scorer(evaluation: Evaluation, name: str, stores: Any = None) -> Iterator[Any]:
    if evaluation.suite.slug == "tiny":
        with _open_scorer(evaluation, name, stores) as scorer:
            yield scorer
    else:
        yield Holding(SCORERS[name].spec)


stages.make_examples = _make_broken
stages.make_answers = _answers_for_a_date
stages.open_target = _target
stages.open_scorer = _scorer
reporting._chart = _draw
lineage.model_needs = lambda suite, **how: _model_needs(suite, **how) if suite.slug == "tiny" else []

from rag_eval_assets.definitions import defs  # noqa: E402, F401 - what Dagster loads from here
