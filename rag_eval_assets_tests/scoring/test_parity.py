"""Values are those of bert-score and sentence-transformers: on real texts, odd ones, and models of other shapes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.scoring.base import Pair, PairScore, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.encoder.tokens import load_tokenizer
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.resolve import ResolvedModel

ROWS = Path(__file__).parents[2] / "../shared/data/rag_dataset_12000_train_0_99.parquet"

ODD = [
    "word",
    "Word!",
    "\nleading newline and trailing blank ",
    "a\u2028b\x1cc\x85d",
    "\U0001f600 \U0001f680",
    "e\u0301te\u0301 \u00fcber na\u00efve",
    "[SEP] in the text, [CLS] and [PAD] and [MASK] too",
    "[UNK]",
    "猫が座っている。",
    "السلام عليكم",
    "नमस्ते दुनिया",
    "x" * 150,
    "a-b_c/d\\e (f) [g] {h} <i> \u201cj\u201d \u2014 k\u2026",
    "0 1 22 333 4,444 5.5 6e7",
    "zero\u200bwidth\u200djoiner\ufeff",
    "\u00a0no-break\u00a0space\u00a0",
    "tab\tand\x00null\x07bell",
    "ﬁ ligature Ⅳ ½",
    "word " * 253,
    "word " * 254,
    "word " * 255,
    "word " * 509,
    "word " * 510,
    "word " * 511,
    "one two three four five six seven eight nine ten " * 60,
]


def rows_of(entries: Sequence[PairScore]) -> np.ndarray:
    assert {entry.status for entry in entries} == {ScoreStatus.SCORED}
    return np.array([list((entry.values or {}).values()) for entry in entries])


def single(pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    return [Pair(candidate, (reference,)) for candidate, reference in pairs]


@pytest.fixture(scope="module")
def odd_pairs() -> list[tuple[str, str]]:
    """Every odd text on both sides, with itself, an ordinary one and a few others."""
    chosen = random.Random(7)
    same = [(text, text) for text in ODD]
    plain = [pair for text in ODD for pair in ((text, "An ordinary sentence."), ("An ordinary sentence.", text))]
    return [*same, *plain, *((text, chosen.choice(ODD)) for text in ODD)]


@pytest.fixture(scope="module")
def real_pairs() -> list[tuple[str, str]]:
    """Answers against other answers and against sentences of contexts: like and unlike, short and long."""
    if not ROWS.is_file():
        pytest.skip("needs ../shared/data")
    rows = pq.read_table(ROWS).to_pylist()
    answers = [str(row["answer"]) for row in rows]
    sentences = [part.strip() for row in rows for part in str(row["context"]).split(". ") if part.strip()]
    chosen = random.Random(11)
    others = [(chosen.choice(answers), chosen.choice(answers)) for _ in range(25)]
    return [*others, *((chosen.choice(answers), chosen.choice(sentences)) for _ in range(25))]


@pytest.mark.parametrize("kind", ["odd", "real"])
@pytest.mark.parametrize("scorer", [BertScore, SentenceCosine])
def test_values_are_the_reference_engines(
    minilm: ResolvedModel, kind: str, scorer: type[BertScore | SentenceCosine], request: pytest.FixtureRequest
) -> None:
    pairs = single(request.getfixturevalue(f"{kind}_pairs"))
    ours = scorer(minilm).score_pairs(pairs, no_advance)
    theirs = scorer(minilm, engine="reference").score_pairs(pairs, no_advance)
    assert [entry.truncated for entry in ours] == [entry.truncated for entry in theirs]
    assert [entry.status for entry in ours] == [entry.status for entry in theirs]
    scored = [number for number, entry in enumerate(ours) if entry.status == ScoreStatus.SCORED]
    assert len(scored) >= 0.9 * len(pairs)
    found, expected = (rows_of([entries[number] for number in scored]) for entries in (ours, theirs))
    assert found == pytest.approx(expected, abs=1e-6, rel=0)


@pytest.mark.parametrize("layer", [1, 4])
def test_values_with_inverse_document_frequencies_are_the_reference_engines(
    minilm: ResolvedModel, odd_pairs: list[tuple[str, str]], layer: int
) -> None:
    pairs = single(odd_pairs[: 2 * len(ODD)])
    ours = BertScore(minilm, layer=layer, idf=True).score_pairs(pairs, no_advance)
    theirs = BertScore(minilm, layer=layer, idf=True, engine="reference").score_pairs(pairs, no_advance)
    assert [(entry.status, entry.detail) for entry in ours] == [(entry.status, entry.detail) for entry in theirs]
    scored = [number for number, entry in enumerate(ours) if entry.status == ScoreStatus.SCORED]
    found, expected = (rows_of([entries[number] for number in scored]) for entries in (ours, theirs))
    assert found == pytest.approx(expected, abs=1e-6, rel=0)
    plain = BertScore(minilm, layer=layer).score_pairs(pairs, no_advance)
    assert np.abs(found - rows_of([plain[number] for number in scored])).max() > 1e-3


def test_frequencies_are_those_of_the_table_and_not_of_what_is_scored_at_a_time(minilm: ResolvedModel) -> None:
    scorer = BertScore(minilm, idf=True)
    references = ["The library opens at nine.", "The bridge was built in 1887.", "Six books.", "  ", None]
    pairs = single([("It opens at nine.", "The library opens at nine."), ("1887", "The bridge was built in 1887.")])
    whole = scorer.for_references(references).score_pairs(pairs, no_advance)
    parts = [scorer.for_references(references).score_pairs([pair], no_advance)[0] for pair in pairs]
    assert whole == parts
    assert scorer.for_references(references[:2]).score_pairs(pairs, no_advance) != whole
    assert BertScore(minilm).for_references(references).score_pairs(pairs, no_advance) != whole


def test_where_all_tokens_of_a_text_stand_in_every_reference_there_is_no_value(minilm: ResolvedModel) -> None:
    pairs = single([("books", "books"), ("six books", "books")])
    alone, _ = BertScore(minilm, idf=True).score_pairs(pairs, no_advance)
    assert (alone.status, alone.values) == (ScoreStatus.SCORER_ERROR, None)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_models_of_other_shapes_agree(
    minilm: ResolvedModel, tmp_path: Path, odd_pairs: list[tuple[str, str]], seed: int
) -> None:
    model = random_bert(minilm, tmp_path, seed)
    pairs = single(odd_pairs)
    ours = BertScore(model, layer=2).score_pairs(pairs, no_advance)
    theirs = BertScore(model, layer=2, engine="reference").score_pairs(pairs, no_advance)
    scored = [number for number, entry in enumerate(ours) if entry.status == ScoreStatus.SCORED]
    found, expected = (rows_of([entries[number] for number in scored]) for entries in (ours, theirs))
    assert found == pytest.approx(expected, abs=1e-6, rel=0)


def test_a_vocabulary_file_alone_gives_the_same_tokens(minilm: ResolvedModel, tmp_path: Path) -> None:
    for name in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).symlink_to(minilm.path / name)
    ours = load_tokenizer(minilm).ids(ODD)
    alone = load_tokenizer(ResolvedModel(minilm.pin, tmp_path, "folder")).ids(ODD)
    assert [ids.tolist() for ids in alone] == [ids.tolist() for ids in ours]


def test_half_precision_is_near_and_named(minilm: ResolvedModel, odd_pairs: list[tuple[str, str]]) -> None:
    for scorer, most in ((BertScore, 2e-2), (SentenceCosine, 2e-2)):
        pairs = single(odd_pairs[: len(ODD)])
        whole, half = scorer(minilm), scorer(minilm, precision="bf16")
        assert (whole.describe()["precision"], half.describe()["precision"]) == ("fp32", "bf16")
        entries = [engine.score_pairs(pairs, no_advance) for engine in (whole, half)]
        scored = [number for number, entry in enumerate(entries[0]) if entry.status == ScoreStatus.SCORED]
        found, expected = (rows_of([scores[number] for number in scored]) for scores in entries)
        assert found == pytest.approx(expected, abs=most)
        assert (found != expected).any()


def random_bert(minilm: ResolvedModel, folder: Path, seed: int) -> ResolvedModel:
    """A small random BERT with MiniLM's vocabulary, saved with a head's prefix as bert-base-uncased is."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file
    from transformers import BertConfig, BertModel

    from rag_eval_assets.weights.registry import ModelPin
    from rag_eval_assets.weights.resolve import file_sha256

    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=80, initializer_range=0.4
    )
    BertModel(config).save_pretrained(folder)
    weights = folder / "model.safetensors"
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(weights).items()}
    if seed % 2:
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, name in old.items():
            tensors = {key.replace(new, name): tensor for key, tensor in tensors.items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(minilm.path / name, folder / name)
    pin = ModelPin(
        id="random-bert",
        repo_id="random-bert",
        revision="0" * 40,
        weights_sha256=file_sha256(weights),
        weights_bytes=None,
        bertscore_layer=2,
        max_seq_length=512,
        package=None,
    )
    return ResolvedModel(pin, folder, "folder")
