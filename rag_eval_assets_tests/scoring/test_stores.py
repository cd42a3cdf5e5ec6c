"""What is known is not computed again, gives the same bits, and needs neither model nor torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_eval_assets.scoring.base import Pair, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.encoder.encoder import PackedEncoder
from rag_eval_assets.scoring.encoders import load_encoder
from rag_eval_assets.scoring.registry import build_scorer
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.scoring.stores import MemoryStore, Stores
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.resolve import ResolvedModel

ROOT = Path(__file__).parents[2]

PAIRS = [
    Pair("The library opens at nine.", ("The library opens at 9 a.m.", None)),
    Pair("word " * 300, ("A much shorter reference.", "Another.")),
    Pair("\u200b", ("a word",)),
    Pair("", ("a word",)),
    Pair("[SEP]", ("a word",)),
    Pair("a word", ("The library opens at 9 a.m.",)),
]


class CountingStore(MemoryStore[Any]):
    """A memory store that remembers how many keys were put."""

    def __init__(self) -> None:
        super().__init__(10**9)
        self.put = 0

    def put_many(self, entries: Mapping[bytes, Any]) -> None:
        self.put += len(entries)
        super().put_many(entries)


@pytest.fixture
def stores() -> Stores:
    return Stores(CountingStore(), CountingStore(), CountingStore())


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of all texts that really are encoded from here on."""
    lengths: list[int] = []
    encode = PackedEncoder.submit

    def submit(self: PackedEncoder, workers: Any, texts: Sequence[np.ndarray], *rest: Any, **options: Any) -> Any:
        lengths.extend(map(len, texts))
        return encode(self, workers, texts, *rest, **options)

    monkeypatch.setattr(PackedEncoder, "submit", submit)
    return lengths


@pytest.mark.parametrize("name", ["bertscore", "sentence_cosine"])
def test_known_pairs_are_not_computed_again_and_new_ones_are(
    minilm: ResolvedModel, stores: Stores, encoded: list[int], name: str
) -> None:
    plain = build_scorer(name, "all-MiniLM-L6-v2", folder=minilm.path).score_pairs(PAIRS, no_advance)
    scorer = build_scorer(name, "all-MiniLM-L6-v2", folder=minilm.path, stores=stores)
    assert scorer.score_pairs(PAIRS, no_advance) == plain
    encoded.clear()
    settled = [pair for pair, score in zip(PAIRS, plain, strict=True) if score.status != ScoreStatus.SCORER_ERROR]
    again = build_scorer(name, "all-MiniLM-L6-v2", folder=minilm.path, stores=stores).score_pairs(settled, no_advance)
    assert again == [score for score in plain if score.status != ScoreStatus.SCORER_ERROR]
    assert encoded == []
    new = Pair("Something new to say.", ("a word",))
    assert scorer.score_pairs([new], no_advance) == build_scorer(
        name, "all-MiniLM-L6-v2", folder=minilm.path
    ).score_pairs([new], no_advance)
    assert encoded


def test_kept_references_are_not_encoded_again_and_give_the_same_bits(
    minilm: ResolvedModel, stores: Stores, encoded: list[int]
) -> None:
    first = BertScore(minilm, stores=stores)
    first.score_pairs([Pair("An answer.", ("A reference of seven tokens.",))], no_advance)
    encoded.clear()
    new = [Pair("Another, longer answer to the question.", ("A reference of seven tokens.",))]
    scored = first.score_pairs(new, no_advance)
    assert len(encoded) == 1
    assert scored == BertScore(minilm).score_pairs(new, no_advance)


def test_one_pass_serves_both_scorers_where_they_share_a_model(
    minilm: ResolvedModel, stores: Stores, encoded: list[int]
) -> None:
    BertScore(minilm, stores=stores).score_pairs(PAIRS, no_advance)
    encoded.clear()
    shared = SentenceCosine(minilm, stores=stores).score_pairs(PAIRS, no_advance)
    assert encoded == [256]  # the one text that the sentence encoder cuts and BERTScore does not
    assert shared == SentenceCosine(minilm).score_pairs(PAIRS, no_advance)


def test_another_layer_precision_or_table_of_frequencies_shares_nothing(minilm: ResolvedModel, stores: Stores) -> None:
    assert isinstance(stores.scores, CountingStore)
    plain, fifth = BertScore(minilm, stores=stores), BertScore(minilm, stores=stores, layer=5)
    half, weighed = BertScore(minilm, stores=stores, precision="bf16"), BertScore(minilm, stores=stores, idf=True)
    tables = [weighed.for_references(["a", "b"]), weighed.for_references(["a", "c"])]
    for number, scorer in enumerate([plain, fifth, half, *tables], 1):
        scorer.score_pairs(PAIRS[:1], no_advance)
        assert stores.scores.put == number


def test_the_reference_engine_is_never_stored(minilm: ResolvedModel, stores: Stores) -> None:
    assert isinstance(stores.scores, CountingStore)
    SentenceCosine(minilm, engine="reference", stores=stores).score_pairs(PAIRS[:1], no_advance)
    assert stores.scores.put == 0


def test_vectors_are_looked_up_before_a_text_is_encoded(
    minilm: ResolvedModel, stores: Stores, encoded: list[int]
) -> None:
    encoder = load_encoder(minilm, stores=stores)
    first = encoder.encode(["one text", "another text", "one text"])
    assert len(encoded) == 2
    assert np.array_equal(encoder.encode(["another text", "a third", "one text"])[[2, 0]], first[:2])
    assert len(encoded) == 3


def test_where_all_is_known_torch_is_not_imported(minilm: ResolvedModel, tmp_path: Path) -> None:
    code = """
import sys
from rag_eval_assets import score
table = score(["It opens at nine.", "\\u200b"], ["At 9 a.m.", "x"], models={"bertscore": "all-MiniLM-L6-v2"})
print(table["bertscore_f1"].to_pylist(), table["bertscore_status"].to_pylist(), table["sentence_cosine"].to_pylist())
print(sorted({"torch", "transformers", "tokenizers", "safetensors"} & set(sys.modules)), file=sys.stderr)
"""
    environment = {**os.environ, "RAG_EVAL_HOME": str(tmp_path), "RAG_EVAL_CACHE_MB": "64", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert "torch" in first.stderr
    assert second.stderr == "[]\n"


def test_a_memory_store_keeps_what_was_used_last() -> None:
    store: MemoryStore[str] = MemoryStore(6, len)
    store.put_many({b"a": "aa", b"b": "bb", b"c": "cc"})
    assert store.get_many([b"a", b"x"]) == ["aa", None]
    store.put_many({b"d": "dd"})
    assert store.get_many([b"a", b"b", b"c", b"d"]) == ["aa", None, "cc", "dd"]
    store.put_many({b"e": "longer than all"})
    assert store.get_many([b"a", b"e"]) == [None, None]


def test_an_interrupted_run_keeps_what_it_has(
    minilm: ResolvedModel, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    def interrupt(count: int) -> None:
        told.append(count)
        if sum(told) == 3:
            raise KeyboardInterrupt

    pairs = [Pair(f"Answer {number}.", ("A reference.",)) for number in range(5)]
    with pytest.raises(KeyboardInterrupt):
        BertScore(minilm, stores=stores).score_pairs(pairs, interrupt)
    assert isinstance(stores.scores, CountingStore)
    assert 2 <= stores.scores.put <= 3
