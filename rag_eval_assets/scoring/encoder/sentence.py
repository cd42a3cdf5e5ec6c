"""Whether a model is a sentence encoder, and whether this package's encoders compute its vectors."""

from __future__ import annotations

import json
from typing import Any, cast

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.encoder.shape import best_engine, layers_of
from rag_eval_assets.scoring.loading import read_json
from rag_eval_assets.scoring.options import REFERENCE
from rag_eval_assets.weights.resolve import ResolvedModel

_MODULES = ["Transformer", "Pooling", "Normalize"]


def sentence_layer(model: ResolvedModel) -> int | None:
    """The layer whose mean is the sentence vector, or None where only sentence-transformers computes the model."""
    if best_engine(model) == REFERENCE or not (model.path / "modules.json").is_file():
        return None
    modules = cast("list[dict[str, Any]]", json.loads((model.path / "modules.json").read_text(encoding="utf-8")))
    if [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules] != _MODULES:
        return None
    pooling = read_json(model, f"{modules[1].get('path')}/config.json")
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value}
    newer = pooling.get("pooling_mode")
    means_only = modes == {"pooling_mode_mean_tokens"} if newer is None else newer == "mean"
    lowers = read_json(model, "sentence_bert_config.json").get("do_lower_case", False)
    layers = layers_of(read_json(model, "config.json"))
    return layers if means_only and pooling.get("include_prompt", True) and not lowers else None


def sentence_engine(model: ResolvedModel) -> str:
    """The fastest engine that computes the model's sentence vectors."""
    return REFERENCE if sentence_layer(model) is None else best_engine(model)


def require_sentence_model(model: ResolvedModel) -> None:
    """Refuse a plain encoder: sentence-transformers would give it a pooling that nobody chose.

    Raises:
        ConfigurationError: the model's folder has no `modules.json`.
    """
    if not (model.path / "modules.json").is_file():
        raise ConfigurationError(
            f"Model {model.pin.id!r} is no sentence encoder (its files have no modules.json)",
            fix="Use all-MiniLM-L6-v2 for sentence embeddings",
        )
