"""BERTScore through the package bert-score, one pair at a time: the reference engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.base import Advance, Pair, PairScore, library_versions
from rag_eval_assets.scoring.bertscore_engine import BertScoreEngine, load_bertscore
from rag_eval_assets.scoring.blocks import score_in_blocks
from rag_eval_assets.scoring.loading import read_json
from rag_eval_assets.tables import BERTSCORE
from rag_eval_assets.weights.resolve import ResolvedModel

CODE_VERSION = "1"


class BertScore:
    """Precision, recall and F1 of the best-matching token vectors (Zhang et al., 2020, arXiv:1904.09675).

    Values are raw cosines in [-1, 1] unless `rescale_with_baseline` is set. With several references each value is the
    maximum over them, as in bert-score; precision, recall and F1 may then come from different references.

    Args:
        model: the encoder.
        layer: the 1-based layer whose vectors are compared; the pinned one by default.
        rescale_with_baseline: give (x - b) / (1 - b), b being the baseline that bert-score ships for model and layer;
            values may then lie outside [-1, 1].

    Raises:
        ConfigurationError: the model has no such layer, or bert-score ships no baseline for it.
    """

    name = "bertscore"
    code_version = CODE_VERSION
    spec = BERTSCORE

    def __init__(self, model: ResolvedModel, *, layer: int | None = None, rescale_with_baseline: bool = False) -> None:
        config = read_json(model, "config.json")
        self._model = model
        self._layer = layer if layer is not None else model.pin.bertscore_layer
        layers = int(config["num_hidden_layers"])
        if not 1 <= self._layer <= layers:
            raise ConfigurationError(
                f"bertscore.layer is {self._layer}", fix=f"Model {model.pin.id!r} has the layers 1 to {layers}"
            )
        self._baseline = _baseline_file(model) if rescale_with_baseline else None
        self._max_tokens = _max_tokens(model, config)

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        """Score every pair; a pair's values do not depend on its neighbours, to the last bit."""
        return score_in_blocks(self._engine, pairs, advance)

    def _engine(self) -> BertScoreEngine:
        return load_bertscore(self._model, self._layer, self._max_tokens, self._baseline)

    def describe(self) -> dict[str, Any]:
        """Model, layer, token limit (special tokens included), rescaling, engine and library versions."""
        return {
            **self._model.pin.describe(),
            "layer": self._layer,
            "max_tokens": self._max_tokens,
            "rescaled": self._baseline is not None,
            "engine": "reference",
            "libraries": library_versions("bert-score", "transformers", "tokenizers", "torch"),
        }


def _max_tokens(model: ResolvedModel, config: dict[str, Any]) -> int:
    """Tokens that the model can read, special ones included.

    bert-score takes the tokenizer's limit; where there is none, it fails with OverflowError for every text, and where
    it is too high, the model fails.
    """
    positions = int(config["max_position_embeddings"])
    limit: object = read_json(model, "tokenizer_config.json").get("model_max_length")
    return min(int(limit), positions) if isinstance(limit, int | float) else positions


def _baseline_file(model: ResolvedModel) -> Path:
    # By file and not by name: given a folder as model, bert-score's `score` silently returns unscaled values.
    spec = importlib.util.find_spec("bert_score")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        file = Path(location) / "rescale_baseline" / "en" / f"{model.pin.id}.tsv"
        if file.is_file():
            return file
    raise ConfigurationError(
        f"bertscore.rescale_with_baseline is set, but bert-score has no baseline for {model.pin.id!r}",
        fix="Leave it out, or score with bert-base-uncased",
    )
