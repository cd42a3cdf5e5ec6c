"""BERTScore: the scorer, its settings, and what a report says about it."""

from __future__ import annotations

import copy
import csv
import importlib.util
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_eval_assets.canonical import content_hash, sequence_hash, text_hash
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.base import Advance, Pair, PairScore, library_versions
from rag_eval_assets.scoring.bertscore_engine import load_bertscore
from rag_eval_assets.scoring.blocks import Engine, Known, score_in_blocks
from rag_eval_assets.scoring.encoder.device import Device, find_device
from rag_eval_assets.scoring.encoder.fingerprint import Fingerprint, fingerprint
from rag_eval_assets.scoring.encoder.sentence import sentence_layer
from rag_eval_assets.scoring.encoder.shape import best_engine, layers_of, positions_of
from rag_eval_assets.scoring.loading import read_json
from rag_eval_assets.scoring.options import REFERENCE, choose_engine
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.scoring.texts import usable_references
from rag_eval_assets.tables import BERTSCORE
from rag_eval_assets.weights.resolve import ResolvedModel

CODE_VERSION = "2"


class BertScore:
    """Precision, recall and F1 of the best-matching token vectors (Zhang et al., 2020, arXiv:1904.09675).

    Values are raw cosines in [-1, 1] unless `rescale_with_baseline` is set. With several references each value is the
    maximum over them, as in bert-score; precision, recall and F1 may then come from different references.

    Args:
        model: the encoder.
        layer: the 1-based layer whose vectors are compared; the pinned one by default.
        rescale_with_baseline: give (x - b) / (1 - b), b being the baseline that bert-score ships for model and layer;
            values may then lie outside [-1, 1].
        idf: weigh tokens by inverse document frequency over the references of the table, as in bert-score.
        precision: fp32, or bf16: some three times as fast, and off by up to 1e-3.
        engine: `reference` calls bert-score itself, one pair at a time. By default the packed encoder, or for other
            architectures transformers in batches, whose values are within 1e-6 of that, where either knows the model.
        stores: where scores and vectors are looked up and kept; nowhere by default.

    Raises:
        ConfigurationError: the model has no such layer, bert-score ships no baseline for it, or the engine has no such
            precision.
    """

    name = "bertscore"
    code_version = CODE_VERSION
    spec = BERTSCORE

    def __init__(
        self,
        model: ResolvedModel,
        *,
        layer: int | None = None,
        rescale_with_baseline: bool = False,
        idf: bool = False,
        precision: str = "fp32",
        engine: str | None = None,
        stores: Stores | None = None,
    ) -> None:
        config = read_json(model, "config.json")
        self._model = model
        self._layer = layer if layer is not None else model.pin.bertscore_layer
        layers = layers_of(config)
        if not 1 <= self._layer <= layers:
            raise ConfigurationError(
                f"bertscore.layer is {self._layer}", fix=f"Model {model.pin.id!r} has the layers 1 to {layers}"
            )
        self._baseline = _baseline_file(model) if rescale_with_baseline else None
        self._max_tokens = _max_tokens(model, config)
        self._idf = idf
        self._references: tuple[str, ...] = ()
        self._precision = precision
        self._engine_name = choose_engine(self.name, engine, precision, best=best_engine(model))
        self._stores = None if self._engine_name == REFERENCE else stores

    def for_references(self, references: Iterable[Any]) -> BertScore:
        """This scorer over a table with these reference texts, from which idf takes its document frequencies.

        All usable references count, also those of answers that cannot be scored: weights then are the same for all
        targets of a suite.
        """
        if not self._idf:
            return self
        made = copy.copy(self)
        made._references = usable_references(Pair(None, tuple(references)))
        return made

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        """Score every pair; a pair's values do not depend on its neighbours, to the last bit.

        With idf they depend on the table's references; without `for_references`, those of `pairs` are the table's.
        """
        if self._idf and not self._references:
            references = [text for pair in pairs for text in pair.references]
            return self.for_references(references)._score(pairs, advance)
        return self._score(pairs, advance)

    def _score(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        known = Known(self._stores.scores, self._digest()) if self._stores is not None else None
        return score_in_blocks(self._engine, pairs, advance, known)

    def describe(self) -> dict[str, Any]:
        """Model, layer, token limit (special tokens included), settings, engine, device and library versions."""
        return {
            **self._model.pin.describe(),
            "layer": self._layer,
            "max_tokens": self._max_tokens,
            "rescaled": self._baseline is not None,
            "idf": self._idf,
            "precision": self._precision,
            "engine": self._engine_name,
            **self._device.describe(),
            "libraries": library_versions("bert-score", "transformers", "tokenizers", "torch"),
        }

    @cached_property
    def _device(self) -> Device:
        return find_device("cpu" if self._engine_name == REFERENCE else None)

    @cached_property
    def _fingerprint(self) -> Fingerprint:
        return fingerprint(self._model, layer=self._layer, precision=self._precision, device=self._device)

    def _digest(self) -> bytes:
        """Digest of all that a score depends on besides its pair."""
        return bytes.fromhex(
            content_hash(
                {
                    "encoder": self._fingerprint.describe(),
                    "scorer": self.name,
                    "code": CODE_VERSION,
                    "max_tokens": self._max_tokens,
                    "baseline": self._baseline_row(),
                    "idf": sequence_hash(sorted(map(text_hash, self._references))) if self._idf else None,
                }
            )
        )

    def _baseline_row(self) -> list[float] | None:
        return None if self._baseline is None else read_baseline(self._baseline, self._layer)

    def _engine(self) -> Engine:
        references = list(self._references) if self._idf else None
        if self._engine_name == REFERENCE:
            return load_bertscore(self._model, self._layer, self._max_tokens, self._baseline, references)
        # Here, since they import numpy, which a run that finds all its scores does without.
        from rag_eval_assets.scoring.bertscore_packed import PackedBertScore
        from rag_eval_assets.scoring.encoder.encoder import load_packed
        from rag_eval_assets.scoring.encoder.tokens import load_tokenizer
        from rag_eval_assets.scoring.token_weights import EqualWeights, InverseFrequencies

        tokenizer = load_tokenizer(self._model)
        weights = EqualWeights(tokenizer)
        if references is not None:
            stripped = [text.strip() for text in references]
            weights = InverseFrequencies([tokenizer.cut(ids, self._max_tokens) for ids in tokenizer.ids(stripped)])
        return PackedBertScore(
            load_packed(self._model, self._layer, self._precision, self._device),
            tokenizer,
            self._max_tokens,
            weights,
            self._fingerprint.digest,
            self._stores,
            baseline=self._baseline_row(),
            vectors=sentence_layer(self._model) == self._layer,
        )


def read_baseline(file: Path, layer: int) -> list[float]:
    """Precision, recall and F1 of unrelated texts at `layer`, from a table of bert-score."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = [row for row in csv.reader(opened) if row]
    found = [row for row in rows[1:] if int(row[0]) == layer]
    return [float(value) for value in found[0][1:4]]


def _max_tokens(model: ResolvedModel, config: dict[str, Any]) -> int:
    """Tokens that the model can read, special ones included.

    bert-score takes the tokenizer's limit; where there is none, it fails with OverflowError for every text, and where
    it is too high, the model fails.
    """
    positions = positions_of(config)
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
