"""BERTScore on real weights: parity with bert-score, one pair at a time, and its settings."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.base import Pair, PairScore, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.registry import ModelPin
from rag_eval_assets.weights.resolve import ResolvedModel, file_sha256

PAIRS = [
    ("The library opens at nine.", "The library opens at 9 a.m."),
    ("The library does not open at nine.", "The library opens at nine."),
    ("Yes.", "Yes, members may borrow up to six books for three weeks at a time."),
    ("\nThe recipe asks for flour, butter\nand sugar.", "Flour, sugar and butter are needed."),
    ("not enough information", "The bridge was built in 1887."),
    ("The bridge was built in 1878.", "The bridge was built in 1887."),
    ("=SUM(A1:A9)", "It adds the cells."),
    ("\u03b1 and \u03b2 are angles", "Alpha and beta are angles."),
    ("<b>bold</b> text", "bold text"),
    ("Ünïcödé wörks", "unicode works"),
    ("42", "forty-two"),
    ("a", "b"),
    ("The same words.", "The same words."),
    ("the same words", "The same words."),
    ("Ferries leave every hour in summer and every two hours in winter, weather permitting.", "Hourly in summer."),
    ("猫が座っている", "The cat is sitting."),
    ("🙂 thanks", "thank you"),
    ("He paid with a card; she paid in cash.", "She paid with a card; he paid in cash."),
    ("word " * 40, "word"),
    ("Because the river floods.", "The river floods in spring, which is why the houses stand on stilts."),
]


def values(entry: PairScore) -> list[float]:
    assert entry.values is not None, entry
    return [entry.values["precision"], entry.values["recall"], entry.values["f1"]]


def copy_model(source: Path, target: Path) -> Path:
    """The model's folder once more, with the weights linked instead of copied."""
    target.mkdir(parents=True)
    for file in source.rglob("*"):
        place = target / file.relative_to(source)
        if file.is_dir():
            place.mkdir()
        elif file.name == "model.safetensors":
            place.symlink_to(file.resolve())
        else:
            shutil.copyfile(file, place)
    return target


def test_values_are_those_of_bert_score_called_with_one_pair_at_a_time(
    bertscore: BertScore, minilm: ResolvedModel
) -> None:
    import bert_score

    ours = bertscore.score_pairs([Pair(candidate, (reference,)) for candidate, reference in PAIRS], no_advance)
    for (candidate, reference), entry in zip(PAIRS, ours, strict=True):
        theirs = bert_score.score([candidate], [reference], model_type=str(minilm.path), num_layers=6, device="cpu")
        assert values(entry) == pytest.approx([column.item() for column in theirs], abs=1e-6, rel=0), candidate


def test_several_references_give_the_maximum_of_each_value_as_in_bert_score(
    bertscore: BertScore, minilm: ResolvedModel
) -> None:
    import bert_score

    candidate = "The museum is closed on Mondays."
    references = ["The museum is closed on Mondays and in all of January.", "Closed.", "Mondays"]
    (together,) = bertscore.score_pairs([Pair(candidate, (*references, None))], no_advance)
    each = bertscore.score_pairs([Pair(candidate, (reference,)) for reference in references], no_advance)
    assert values(together) == [max(column) for column in zip(*map(values, each), strict=True)]
    theirs = bert_score.score([candidate], [references], model_type=str(minilm.path), num_layers=6, batch_size=1)
    assert values(together) == pytest.approx([column.item() for column in theirs], abs=1e-6, rel=0)


def test_equal_texts_score_one(bertscore: BertScore) -> None:
    (entry,) = bertscore.score_pairs([Pair("The same words.", ("The same words.",))], no_advance)
    assert values(entry) == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)


def test_two_different_emoji_are_both_unknown_tokens_and_score_one(bertscore: BertScore) -> None:
    (entry,) = bertscore.score_pairs([Pair("\U0001f600", ("\U0001f680",))], no_advance)
    assert entry.status == ScoreStatus.SCORED
    assert values(entry) == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)


def test_a_text_of_special_tokens_alone_has_no_weight_and_is_an_error_of_its_row(bertscore: BertScore) -> None:
    broken, good = bertscore.score_pairs([Pair("[SEP]", ("a word",)), Pair("a word", ("a word",))], no_advance)
    assert broken.status == ScoreStatus.SCORER_ERROR
    assert broken.detail is not None
    assert "not a finite number" in broken.detail
    assert good.status == ScoreStatus.SCORED


def test_texts_are_truncated_after_510_word_pieces(bertscore: BertScore) -> None:
    fits = "word " * 510
    cut = fits + "other ending entirely"
    entries = bertscore.score_pairs(
        [Pair(fits, ("word",)), Pair(cut, ("word",)), Pair("word", (cut,)), Pair(cut, (fits,))], no_advance
    )
    assert [entry.truncated for entry in entries] == [False, True, True, True]
    assert values(entries[0]) == values(entries[1])
    assert values(entries[3]) == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)


def test_a_tokenizer_without_a_limit_gets_the_models_own(
    bertscore: BertScore, minilm: ResolvedModel, tmp_path: Path
) -> None:
    folder = copy_model(minilm.path, tmp_path / "without limit")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    del config["model_max_length"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    unlimited = BertScore(ResolvedModel(minilm.pin, folder, "folder"))
    assert unlimited.describe() == bertscore.describe()
    pairs = [Pair("short", ("shorter",)), Pair("word " * 600, ("word",))]
    assert unlimited.score_pairs(pairs, no_advance) == bertscore.score_pairs(pairs, no_advance)


def test_a_folder_whose_name_looks_like_t5_is_loaded_as_what_it_is(
    bertscore: BertScore, minilm: ResolvedModel, tmp_path: Path
) -> None:
    folder = copy_model(minilm.path, tmp_path / "t5" / "minilm")
    pairs = [Pair("short", ("shorter",))]
    scorer = BertScore(ResolvedModel(minilm.pin, folder, "folder"))
    assert scorer.score_pairs(pairs, no_advance) == bertscore.score_pairs(pairs, no_advance)


def test_another_layer_gives_other_values_and_is_named(bertscore: BertScore, minilm: ResolvedModel) -> None:
    pairs = [Pair("The bridge was built in 1878.", ("The bridge was built in 1887.",))]
    third = BertScore(minilm, layer=3)
    assert third.describe()["layer"] == 3
    assert third.score_pairs(pairs, no_advance) != bertscore.score_pairs(pairs, no_advance)


@pytest.mark.parametrize("layer", [0, 7])
def test_a_layer_that_the_model_does_not_have_is_a_configuration_error(minilm: ResolvedModel, layer: int) -> None:
    with pytest.raises(ConfigurationError, match=f"layer is {layer}.*layers 1 to 6"):
        BertScore(minilm, layer=layer)


def test_rescaling_without_a_baseline_is_a_configuration_error(minilm: ResolvedModel) -> None:
    with pytest.raises(ConfigurationError, match="no baseline for 'all-MiniLM-L6-v2'"):
        BertScore(minilm, rescale_with_baseline=True)


def test_rescaled_values_are_raw_values_over_the_baseline_of_the_layer(minilm: ResolvedModel, tmp_path: Path) -> None:
    """With a small random model that bears the name for which bert-score has a baseline."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=16, num_hidden_layers=12, num_attention_heads=2, intermediate_size=16, vocab_size=30522
    )
    BertModel(config).save_pretrained(tmp_path)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(minilm.path / name, tmp_path / name)
    pin = ModelPin(
        id="bert-base-uncased",
        repo_id="bert-base-uncased",
        revision="0" * 40,
        weights_sha256=file_sha256(tmp_path / "model.safetensors"),
        weights_bytes=None,
        bertscore_layer=9,
        max_seq_length=512,
        package=None,
    )
    model = ResolvedModel(pin, tmp_path, "folder")
    pairs = [Pair("The bridge was built in 1878.", ("It was built later.",))]
    raw, rescaled = BertScore(model), BertScore(model, rescale_with_baseline=True)
    assert (raw.describe()["rescaled"], rescaled.describe()["rescaled"]) == (False, True)
    # The row of layer 9 in bert-score's table for bert-base-uncased.
    baseline = [0.35375935, 0.3537393, 0.35219112]
    expected = [
        (value - base) / (1 - base)
        for value, base in zip(values(raw.score_pairs(pairs, no_advance)[0]), baseline, strict=True)
    ]
    assert values(rescaled.score_pairs(pairs, no_advance)[0]) == pytest.approx(expected, abs=1e-6)


def test_what_is_told_names_model_settings_and_versions_but_no_path(
    bertscore: BertScore, minilm: ResolvedModel
) -> None:
    told = bertscore.describe()
    assert {name: told[name] for name in ("id", "layer", "max_tokens", "rescaled", "engine")} == {
        "id": "all-MiniLM-L6-v2",
        "layer": 6,
        "max_tokens": 512,
        "rescaled": False,
        "engine": "packed",
    }
    assert told["weights_sha256"] == minilm.pin.weights_sha256
    assert told["libraries"]["bert-score"] == "0.3.13"
    assert os.sep + "model" not in json.dumps(told)
