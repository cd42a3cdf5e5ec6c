"""Models of other architectures: values are those of bert-score, and no text's bits depend on the other texts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.base import Pair, Scorer, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.encoder.device import Device, instructions
from rag_eval_assets.scoring.encoder.encoder import PackedEncoder, Wanted
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.scoring.stores import MemoryStore, Stores
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.hashes import file_sha256
from rag_eval_assets.weights.registry import ModelPin
from rag_eval_assets.weights.resolve import ResolvedModel

CPU = Device("cpu", instructions())
LENGTHS = [2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 128]
TEXTS = [
    "word",
    "Word!",
    "\n a blank before and two behind  ",
    "The library opens at nine.",
    "The library opens at 9 a.m. on weekdays, and at ten on Saturdays.",
    "not enough information",
    "é ü naïve \U0001f600 猫",
    "</s> and <pad> in the text",
    "word " * 40,
    "the river floods, which is why the houses stand on stilts " * 30,
]
SIZES: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 80},
    "distilbert": {"dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 80},
}
SIZES["roberta"] = SIZES["mpnet"] = {**SIZES["bert"], "max_position_embeddings": 130}
SIZES["bert"] = {**SIZES["bert"], "hidden_act": "relu", "max_position_embeddings": 128}
SIZES["distilbert"]["max_position_embeddings"] = 128


def made(kind: str, folder: Path) -> ResolvedModel:
    """A small random model with a byte-level vocabulary of its own, and sentence-transformers' files beside it."""
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(3)
    tokenizer: Any = ByteLevelBPETokenizer(add_prefix_space=kind != "roberta")
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(TEXTS, vocab_size=400, min_frequency=1, special_tokens=special, show_progress=False)
    tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=kind != "roberta")
    config = AutoConfig.for_model(
        kind, vocab_size=tokenizer.get_vocab_size(), pad_token_id=1, initializer_range=0.3, **SIZES[kind]
    )
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    # bert-score treats RoBERTa's own class in a way of its own.
    settings = {
        "tokenizer_class": "RobertaTokenizer" if kind == "roberta" else "PreTrainedTokenizerFast",
        "cls_token": "<s>",
        "sep_token": "</s>",
        **names,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 128}))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{name}"}
        for n, (path, name) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": False}))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 48, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    pin = ModelPin(
        id=f"random-{kind}",
        repo_id="none",
        revision="0" * 40,
        weights_sha256=file_sha256(folder / "model.safetensors"),
        weights_bytes=None,
        bertscore_layer=2,
        max_seq_length=64,
        package=None,
    )
    return ResolvedModel(pin, folder, "folder")


@pytest.fixture(scope="module", params=list(SIZES))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ResolvedModel:
    return made(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    draw = random.Random(5)
    return [
        *(Pair(text, (text,)) for text in TEXTS),
        *(Pair(text, (draw.choice(TEXTS), draw.choice(TEXTS))) for text in TEXTS for _ in range(2)),
    ]


@pytest.mark.parametrize(
    ("scorer", "options"), [(BertScore, {}), (BertScore, {"idf": True}), (SentenceCosine, {})], ids=str
)
def test_values_are_the_reference_engines(
    model: ResolvedModel, pairs: list[Pair], scorer: Callable[..., Scorer], options: dict[str, Any]
) -> None:
    ours, theirs = scorer(model, **options), scorer(model, engine="reference", **options)
    assert (ours.describe()["engine"], theirs.describe()["engine"]) == ("transformers", "reference")
    found, expected = (engine.score_pairs(pairs, no_advance) for engine in (ours, theirs))
    assert [(score.status, score.truncated) for score in found] == [
        (score.status, score.truncated) for score in expected
    ]
    assert {score.status for score in found} == {ScoreStatus.SCORED}
    assert any(score.truncated for score in found)
    for one, other in zip(found, expected, strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-6, rel=0)


def encoded(encoder: PackedEncoder, texts: list[np.ndarray], most: int | None = None) -> list[np.ndarray]:
    with encoder.workers() as workers:
        pending = encoder.submit(workers, texts, Wanted(rows=True, vectors=True), last=most is None, most=most)
        results = [entry.result() for entry in pending]
    return [
        np.vstack([entry.rows.numpy(), entry.vector])
        for entry in results
        if entry.rows is not None and entry.vector is not None
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_company_order_and_budget_give_the_same_bits(model: ResolvedModel, seed: int) -> None:
    draw = random.Random(seed)
    texts = [
        np.array([0, *(draw.randrange(5, 300) for _ in range(draw.choice(LENGTHS) - 2)), 2], np.int32)
        for _ in range(30)
    ]
    texts += texts[:5]
    encoder = PackedEncoder(model, 3, "fp32", CPU)
    alone = [encoded(encoder, [ids])[0] for ids in texts]
    for most in (None, 1, 64, 300, 5000):
        together = encoded(encoder, texts, most)
        assert all(np.array_equal(one, other) for one, other in zip(together, alone, strict=True))


def test_what_is_known_is_not_encoded_again_and_references_are_kept(
    model: ResolvedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    submit = PackedEncoder.submit

    def counted(self: PackedEncoder, workers: Any, texts: Sequence[np.ndarray], *rest: Any, **options: Any) -> Any:
        lengths.extend(map(len, texts))
        return submit(self, workers, texts, *rest, **options)

    monkeypatch.setattr(PackedEncoder, "submit", counted)
    stores = Stores(MemoryStore(10**6), MemoryStore(10**6), MemoryStore(10**6))
    pairs = [Pair(text, (TEXTS[3],)) for text in TEXTS]
    first = BertScore(model, stores=stores).score_pairs(pairs, no_advance)
    assert len(lengths) == len(TEXTS)
    lengths.clear()
    assert BertScore(model, stores=stores).score_pairs(pairs[::-1], no_advance) == first[::-1]
    assert lengths == []
    BertScore(model, stores=stores).score_pairs([Pair("Another answer.", (TEXTS[3],))], no_advance)
    assert len(lengths) == 1
    assert [BertScore(model).score_pairs([pair], no_advance)[0] for pair in pairs] == first


def test_half_precision_is_refused(model: ResolvedModel) -> None:
    with pytest.raises(ConfigurationError, match="the transformers engine does not have"):
        BertScore(model, precision="bf16")


def test_an_architecture_that_nobody_compared_is_left_to_the_public_packages(
    model: ResolvedModel, tmp_path: Path
) -> None:
    for file in model.path.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    config = json.loads((model.path / "config.json").read_text())
    config |= {"model_type": "electra", "num_hidden_layers": 3}
    (tmp_path / "config.json").write_text(json.dumps(config))
    other = ResolvedModel(model.pin, tmp_path, "folder")
    assert BertScore(other).describe()["engine"] == "reference"
    with pytest.raises(ConfigurationError, match="no known encoder"):
        PackedEncoder(other, 2, "fp32", CPU)
