"""Sentence cosine on real weights: published values, length limit, and the encoder that it shares."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.base import Pair, PairScore, no_advance
from rag_eval_assets.scoring.encoders import load_encoder
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.scoring.sentence_cosine import cosine as cosine_of
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.resolve import ResolvedModel

PUBLISHED = Path(__file__).parents[2] / "../shared/data/cosine_published.parquet"


def value(entry: PairScore) -> float:
    assert entry.values is not None, entry
    return entry.values["cosine"]


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs ../shared/data/cosine_published.parquet")
def test_published_values_are_reproduced(cosine: SentenceCosine) -> None:
    rows = pq.read_table(PUBLISHED).to_pylist()
    assert len(rows) == 12
    entries = cosine.score_pairs([Pair(row["candidate"], (row["reference"],)) for row in rows], no_advance)
    published = [row["reported_score"] for row in rows]
    assert [value(entry) for entry in entries] == pytest.approx(published, abs=5e-5, rel=0)
    assert min(published) < 0


def test_equal_texts_have_cosine_one_and_never_more(cosine: SentenceCosine) -> None:
    texts = [f"Sentence number {number}." for number in range(20)]
    for entry in cosine.score_pairs([Pair(text, (text,)) for text in texts], no_advance):
        assert value(entry) <= 1.0
        assert value(entry) == pytest.approx(1.0, abs=1e-12)


def test_cosine_does_not_depend_on_the_side(cosine: SentenceCosine) -> None:
    one, other = cosine.score_pairs([Pair("a red car", ("a boat",)), Pair("a boat", ("a red car",))], no_advance)
    assert value(one) == value(other)


def test_several_references_give_the_best_one(cosine: SentenceCosine) -> None:
    references = ("It rains.", "The sun shines.", "\u200b", "")
    (together,) = cosine.score_pairs([Pair("Sunshine everywhere.", references)], no_advance)
    each = cosine.score_pairs([Pair("Sunshine everywhere.", (text,)) for text in references[:2]], no_advance)
    assert value(together) == max(value(entry) for entry in each)
    assert value(each[0]) != value(each[1])


def test_two_different_emoji_are_both_unknown_tokens_and_score_one(cosine: SentenceCosine) -> None:
    (entry,) = cosine.score_pairs([Pair("\U0001f600", ("\U0001f680",))], no_advance)
    assert (entry.status, value(entry)) == (ScoreStatus.SCORED, pytest.approx(1.0, abs=1e-12))


def test_texts_are_truncated_after_254_word_pieces(cosine: SentenceCosine) -> None:
    fits = "word " * 254
    cut = fits + "another ending entirely"
    entries = cosine.score_pairs([Pair(fits, ("word",)), Pair(cut, ("word",)), Pair("word", (cut,))], no_advance)
    assert [entry.truncated for entry in entries] == [False, True, True]
    assert value(entries[0]) == value(entries[1])


def test_the_encoder_gives_unit_vectors(minilm: ResolvedModel) -> None:
    encoder = load_encoder(minilm)
    vectors = encoder.encode(["one", "two words", "three words here"])
    assert (vectors.dtype, vectors.shape) == (np.float32, (3, encoder.dimension))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert encoder.encode([]).shape == (0, 384)


def test_vectors_are_those_of_sentence_transformers(minilm: ResolvedModel) -> None:
    encoder = load_encoder(minilm)
    texts = ["one", "two words", "a sentence that is a little longer than the others"]
    assert encoder.encode(texts) == pytest.approx(load_encoder(minilm, engine="reference").encode(texts), abs=1e-6)


def test_a_folder_with_another_length_limit_beside_the_right_weights_is_refused(
    minilm: ResolvedModel, tmp_path: Path
) -> None:
    folder = tmp_path / "minilm"
    folder.mkdir()
    for file in minilm.path.iterdir():
        (folder / file.name).symlink_to(file.resolve())
    (folder / "sentence_bert_config.json").unlink()
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128, "do_lower_case": False}))
    with pytest.raises(ConfigurationError, match="128 tokens, expected 256"):
        load_encoder(ResolvedModel(minilm.pin, folder, "folder"))


def test_a_plain_encoder_is_refused(minilm: ResolvedModel, tmp_path: Path) -> None:
    plain = ResolvedModel(replace(minilm.pin, id="bert-base-uncased"), tmp_path, "folder")
    with pytest.raises(ConfigurationError, match="'bert-base-uncased' is no sentence encoder"):
        SentenceCosine(plain)


def test_cosines_stay_in_range_and_say_where_there_is_none() -> None:
    vector = np.array([0.1, 0.2, 0.3])
    assert cosine_of(vector, vector * 3) == pytest.approx(1.0, abs=1e-15)
    assert cosine_of(vector, -vector) >= -1.0
    assert math.isnan(cosine_of(vector, np.zeros(3)))
    assert math.isnan(cosine_of(vector, np.array([math.nan, 1.0, 1.0])))
    assert math.isnan(cosine_of(vector, np.array([math.inf, 1.0, 1.0])))


def test_what_is_told_names_model_limit_and_versions(cosine: SentenceCosine, minilm: ResolvedModel) -> None:
    told = cosine.describe()
    assert (told["id"], told["max_tokens"], told["engine"]) == ("all-MiniLM-L6-v2", 256, "packed")
    assert told["weights_sha256"] == minilm.pin.weights_sha256
    assert set(told["libraries"]) == {"sentence-transformers", "transformers", "tokenizers", "torch"}
