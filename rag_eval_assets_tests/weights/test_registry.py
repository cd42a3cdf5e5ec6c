"""The pins, and what an unknown model id says."""

from __future__ import annotations

import re

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.registry import REGISTRY, ModelPin, pin


def test_exactly_two_models_are_pinned() -> None:
    assert {name: model.bertscore_layer for name, model in REGISTRY.items()} == {
        "bert-base-uncased": 9,
        "all-MiniLM-L6-v2": 6,
    }


@pytest.mark.parametrize("model", REGISTRY.values(), ids=REGISTRY.keys())
def test_a_pin_names_a_commit_and_a_hash_not_a_branch(model: ModelPin) -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", model.revision)
    assert re.fullmatch(r"[0-9a-f]{64}", model.weights_sha256)


@pytest.mark.parametrize(
    ("asked", "proposed"),
    [
        ("all-minilm-l6-v2", "all-MiniLM-L6-v2"),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("bert-base-cased", "bert-base-uncased"),
    ],
)
def test_an_unknown_id_proposes_the_nearest_pin(asked: str, proposed: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Did you mean '{proposed}'"):
        pin(asked)


def test_an_id_far_from_all_pins_only_lists_them() -> None:
    with pytest.raises(ConfigurationError) as error:
        pin("gpt-9")
    assert "Did you mean" not in str(error.value)
    assert "all-MiniLM-L6-v2, bert-base-uncased" in str(error.value)
