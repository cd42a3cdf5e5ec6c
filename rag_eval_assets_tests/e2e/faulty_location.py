"""A code location for `test_backfill`: the project's own definitions, but on one run date the examples are broken."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from rag_eval_assets.dataset.examples import ExampleSet
from rag_eval_assets.evaluation import stages
from rag_eval_assets.evaluation.context import Evaluation, Outcome
from rag_eval_assets.suite.load import LoadedSuite

FAULTY_DATE = "2026-03-04"

_make_examples, _load_examples = stages.make_examples, stages.load_examples


def _make_broken(evaluation: Evaluation) -> Outcome:
    if evaluation.run_date == FAULTY_DATE:
        stages.load_examples = _load_twice
    try:
        return _make_examples(evaluation)
    finally:
        stages.load_examples = _load_examples


def _load_twice(suite: LoadedSuite, limit: int | None = None) -> ExampleSet:
    examples = _load_examples(suite, limit)
    return dataclasses.replace(examples, table=pa.concat_tables([examples.table, examples.table]))


stages.make_examples = _make_broken

from rag_eval_assets.definitions import defs  # noqa: E402, F401 - what Dagster loads from here
