"""Where the tables of an evaluation lie, whole or sample."""

from __future__ import annotations

import dataclasses

import pytest

from rag_eval_assets.evaluation.context import Evaluation


def test_a_key_holds_the_slugs_of_suite_and_target(evaluation: Evaluation) -> None:
    assert evaluation.key("corpus").path == "my_suite/corpus/run_date=2026-03-01/part-0.parquet"
    key = evaluation.key("bertscore", "Base line")
    assert key.path == "my_suite/base_line/bertscore/run_date=2026-03-01/part-0.parquet"


def test_a_sample_lies_apart_whatever_its_size(evaluation: Evaluation) -> None:
    sample = dataclasses.replace(evaluation, limit=1_000_000)
    assert sample.is_sample
    assert sample.key("corpus").path.startswith("my_suite~sample/corpus/")
    assert not evaluation.is_sample


def test_an_unknown_target_has_no_key(evaluation: Evaluation) -> None:
    with pytest.raises(KeyError, match="nobody"):
        evaluation.key("bertscore", "nobody")
