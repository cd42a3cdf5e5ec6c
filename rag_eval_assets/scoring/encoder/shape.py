"""The shape of a BERT-family model, read from its configuration, and whether the packed encoder can compute it."""

from __future__ import annotations

from dataclasses import dataclass

from rag_eval_assets.scoring.loading import read_json
from rag_eval_assets.weights.resolve import ResolvedModel


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
