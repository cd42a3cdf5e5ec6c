"""The only module that talks to bert-score, the reference engine: called so that no pair can affect another."""

# bert-score has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rag_eval_assets.scoring.blocks import ReadyPair
from rag_eval_assets.scoring.loading import LOAD_LOCK, quiet_loading
from rag_eval_assets.scoring.threads import in_single_threads
from rag_eval_assets.weights.resolve import ResolvedModel, verify

_VALUES = ("precision", "recall", "f1")

_BLOCK_PAIRS = 64
"""Pairs whose embeddings bert-score holds together."""


class _FolderName(str):
    """A folder's path as model name: bert-score takes any name with "t5" in it, `/data/t5/bert` say, for a T5 model."""

    __slots__ = ()

    def __contains__(self, key: str, /) -> bool:
        return key != "t5" and super().__contains__(key)


class BertScoreEngine:
    """A loaded `bert_score.BERTScorer`, always on the CPU, so that values do not change with the machine's devices."""

    def __init__(
        self,
        folder: Path,
        layer: int,
        max_tokens: int,
        baseline: Path | None,
        idf_references: Sequence[str] | None = None,
    ) -> None:
        with quiet_loading():
            from bert_score import BERTScorer

            self._scorer: Any = BERTScorer(
                model_type=_FolderName(folder),
                num_layers=layer,
                device="cpu",
                # `lang` is asked for with rescaling only, and used for nothing once the baseline's file is given.
                lang="en" if baseline else None,
                rescale_with_baseline=baseline is not None,
                baseline_path=str(baseline) if baseline else None,
                idf=idf_references is not None,
                nthreads=0,  # else it forks for the document frequencies, which other threads may not survive
            )
            if baseline:
                # Read once and kept; reading it makes torch warn of a read-only array.
                self._scorer.baseline_vals.tolist()
        tokenizer: Any = vars(self._scorer)["_tokenizer"]
        tokenizer.model_max_length = max_tokens
        self._most_tokens = max_tokens - int(tokenizer.num_special_tokens_to_add())
        # Calls with and without truncation change a tokenizer's state, which other threads would stumble over: counting
        # has a tokenizer of its own, and the scorer's is set once and for all here.
        self._counter: Any = copy.deepcopy(tokenizer)
        self._counting = threading.Lock()
        if idf_references is not None:
            self._scorer.compute_idf(list(idf_references))
        self._scorer.score(["warm"], ["up"], batch_size=1)

    @property
    def most_tokens(self) -> int:
        """Tokens of a text that the model sees, without special tokens."""
        return self._most_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each whole text, stripped as bert-score strips it."""
        with self._counting:
            return [
                len(self._counter(text.strip(), add_special_tokens=False, verbose=False)["input_ids"]) for text in texts
            ]

    def compute(self, pairs: Sequence[ReadyPair]) -> Iterator[tuple[int, dict[str, float]]]:
        """Precision, recall and F1 of each pair, each the maximum over the pair's references.

        With `batch_size=1` bert-score encodes each distinct text alone and compares each pair alone. In larger batches
        it pads, which moves the last bits with the batch's make-up (and that follows the process's string hashing), and
        its padding mask lifts negative similarities of the shorter texts to zero.
        """
        for start in range(0, len(pairs), _BLOCK_PAIRS):
            yield from enumerate(in_single_threads(self._compute, pairs[start : start + _BLOCK_PAIRS]), start)

    def _compute(self, pairs: Sequence[ReadyPair]) -> list[dict[str, float]]:
        candidates = [pair.candidate for pair in pairs for _ in pair.references]
        references = [reference for pair in pairs for reference in pair.references]
        columns = self._scorer.score(candidates, references, batch_size=1)
        rows = iter(zip(*(column.tolist() for column in columns), strict=True))
        return [_best([next(rows) for _ in pair.references]) for pair in pairs]


def _best(rows: Sequence[tuple[float, ...]]) -> dict[str, float]:
    return dict(zip(_VALUES, (max(column) for column in zip(*rows, strict=True)), strict=True))


@cache
def _load(model: ResolvedModel, layer: int, max_tokens: int, baseline: Path | None) -> BertScoreEngine:
    return BertScoreEngine(model.path, layer, max_tokens, baseline)


def load_bertscore(
    model: ResolvedModel, layer: int, max_tokens: int, baseline: Path | None, idf_references: Sequence[str] | None
) -> BertScoreEngine:
    """The engine for these settings, loaded once per process; one with document frequencies is made for its table."""
    with LOAD_LOCK:
        verify(model)
        if idf_references is not None:
            return BertScoreEngine(model.path, layer, max_tokens, baseline, idf_references)
        return _load(model, layer, max_tokens, baseline)
