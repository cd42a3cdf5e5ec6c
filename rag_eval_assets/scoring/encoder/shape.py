"""The shape of a model, read from its configuration, and which of this package's encoders can compute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_eval_assets.scoring.loading import read_json
from rag_eval_assets.scoring.options import PACKED, REFERENCE, TRANSFORMERS
from rag_eval_assets.weights.resolve import ResolvedModel

OTHER_TYPES = frozenset({"bert", "distilbert", "mpnet", "roberta"})
"""Architectures (`model_type` of `config.json`) that the transformers path computes: tests compare each with
bert-score. A BERT takes it where it is no plain one."""

_FIRST_POSITION_FOLLOWS_PADDING = frozenset({"mpnet", "roberta"})


@dataclass(frozen=True)
class BertShape:
    """The sizes of a BERT encoder, named as in its `config.json` where that is short enough.

    Attributes:
        layers: encoder layers.
        heads: attention heads of each.
        hidden: dimensions of a token's vector.
        inner: dimensions between the two matrices of the feed-forward part.
        positions: most tokens of a text.
        epsilon: what layer normalisation adds to the variance.
    """

    layers: int
    heads: int
    hidden: int
    inner: int
    positions: int
    epsilon: float


def bert_shape(model: ResolvedModel) -> BertShape | None:
    """The shape of `model`, or None where it is no plain BERT encoder and takes the transformers path."""
    config = read_json(model, "config.json")
    plain = (
        config.get("model_type") == "bert"
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
    )
    if not plain:
        return None
    return BertShape(
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        hidden=int(config["hidden_size"]),
        inner=int(config["intermediate_size"]),
        positions=int(config["max_position_embeddings"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
    )


def best_engine(model: ResolvedModel) -> str:
    """The fastest engine that computes `model`."""
    if bert_shape(model) is not None:
        return PACKED
    config = read_json(model, "config.json")
    known = config.get("model_type") in OTHER_TYPES and not config.get("is_decoder")
    # The vocabulary's file alone says how text is cut for a plain BERT only.
    return TRANSFORMERS if known and (model.path / "tokenizer.json").is_file() else REFERENCE


def layers_of(config: dict[str, Any]) -> int:
    """How many encoder layers a `config.json` names."""
    return int(config["n_layers"] if config.get("model_type") == "distilbert" else config["num_hidden_layers"])


def hidden_of(config: dict[str, Any]) -> int:
    """Dimensions of a token's vector."""
    return int(config["dim"] if config.get("model_type") == "distilbert" else config["hidden_size"])


def positions_of(config: dict[str, Any]) -> int:
    """Most tokens of a text, special ones included."""
    positions = int(config["max_position_embeddings"])
    if config.get("model_type") in _FIRST_POSITION_FOLLOWS_PADDING:
        return positions - int(config.get("pad_token_id", 1)) - 1
    return positions
