"""Scorers by name: defaults, and what a wrong name or option says."""

from __future__ import annotations

from typing import Any

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.registry import DEFAULT_MODELS, SCORERS, build_scorer
from rag_eval_assets.weights.resolve import ResolvedModel


def test_each_scorer_has_its_own_default_model() -> None:
    assert DEFAULT_MODELS == {"bertscore": "bert-base-uncased", "sentence_cosine": "all-MiniLM-L6-v2"}


def test_an_entry_agrees_with_the_scorer_that_it_builds(minilm: ResolvedModel) -> None:
    for name, entry in SCORERS.items():
        scorer = build_scorer(name, "all-MiniLM-L6-v2", folder=minilm.path)
        assert (scorer.name, scorer.spec, scorer.code_version) == (entry.name, entry.spec, entry.code_version)
        assert entry.spec.name == name


def test_an_unknown_scorer_proposes_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"'bert_score'.*Did you mean 'bertscore'"):
        build_scorer("bert_score")


def test_options_reach_the_scorer(minilm: ResolvedModel) -> None:
    scorer = build_scorer("bertscore", "all-MiniLM-L6-v2", folder=minilm.path, options={"layer": 2})
    assert scorer.describe()["layer"] == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bertscore", {"layers": 3}, "'layers'.*Did you mean 'layer'"),
        ("bertscore", {"layer": True}, "bertscore.layer is True.*type int"),
        ("bertscore", {"rescale_with_baseline": "yes"}, "rescale_with_baseline is 'yes'.*type bool"),
        ("sentence_cosine", {"layer": 3}, "'layer'.*Options: engine, precision"),
    ],
)
def test_a_wrong_option_is_named_before_any_model_is_looked_for(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build_scorer(name, options=options)
