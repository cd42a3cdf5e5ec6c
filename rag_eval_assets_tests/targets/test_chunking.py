"""Cutting documents: nothing is lost, nothing is too long, and neighbours share whole sentences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_assets.dataset.corpus import Document
from rag_eval_assets.suite.targets import Chunking
from rag_eval_assets.targets.chunking import Chunk, chunk_document

ODD = " .!?\n\t\r\x0b\x1c\x85\u2028\u00a0\u200b\ufeff\u3002\uff01\uff1f…\"'()[]-abAB1"
texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(ODD)), max_size=200)
sentences = st.lists(st.integers(1, 40), max_size=12).map(
    # Sentences of so many words, and no word twice: "W0 w1 w2. W3 w4. ..."
    lambda lengths: [
        "W" + " ".join(f"w{sum(lengths[:place]) + word}" for word in range(length))[1:] + "."
        for place, length in enumerate(lengths)
    ]
)
chunkings = st.builds(Chunking, max_words=st.integers(8, 40), overlap_sentences=st.integers(0, 20))


def cut(text: str, chunking: Chunking) -> list[Chunk]:
    return chunk_document(Document("d", None, text), chunking)


def without_overlap(text: str, chunking: Chunking) -> list[str]:
    alone = chunking.model_copy(update={"overlap_sentences": 0})
    return [sentence for chunk in cut(text, alone) for sentence in chunk.sentences]


@settings(deadline=None)
@given(texts, chunkings)
def test_every_character_appears_in_order(text: str, chunking: Chunking) -> None:
    assert "".join("".join(without_overlap(text, chunking)).split()) == "".join(text.split())


@settings(deadline=None)
@given(sentences, chunkings)
def test_every_word_appears_in_order(parts: list[str], chunking: Chunking) -> None:
    text = " ".join(parts)
    assert " ".join(without_overlap(text, chunking)).split() == text.split()


@settings(deadline=None)
@given(st.one_of(texts, sentences.map(" ".join)), chunkings)
def test_a_passage_goes_on_where_the_one_before_ended_or_a_few_whole_sentences_earlier(
    text: str, chunking: Chunking
) -> None:
    whole = without_overlap(text, chunking)
    end = 0
    for chunk in cut(text, chunking):
        length = len(chunk.sentences)
        most = min(chunking.overlap_sentences, length - 1, end)
        shared = [n for n in range(most + 1) if list(chunk.sentences) == whole[end - n : end - n + length]]
        assert shared, "each passage brings something new and leaves nothing out"
        end += length - shared[0]
    assert end == len(whole)


@settings(deadline=None)
@given(st.one_of(texts, sentences.map(" ".join)), chunkings)
def test_no_passage_is_too_long_empty_or_changed(text: str, chunking: Chunking) -> None:
    for chunk in cut(text, chunking):
        assert 1 <= len(chunk.text.split()) <= chunking.max_words
        assert all(sentence in text and sentence == sentence.strip() for sentence in chunk.sentences)


@settings(deadline=None)
@given(texts, chunkings)
def test_the_same_document_is_always_cut_the_same_way(text: str, chunking: Chunking) -> None:
    chunks = cut(text, chunking)
    assert chunks == cut(text, chunking)
    assert [(chunk.id, chunk.document_id) for chunk in chunks] == [(f"d#{n}", "d") for n in range(len(chunks))]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\u00a0\u2028"])
def test_a_document_without_a_word_gives_no_passage(text: str) -> None:
    assert cut(text, Chunking()) == []


def test_neighbours_share_the_last_sentence_where_it_leaves_room() -> None:
    text = "One two three. Four five six. Seven eight nine ten eleven twelve. A b c d e f g h."
    assert [chunk.text for chunk in cut(text, Chunking(max_words=9, overlap_sentences=1))] == [
        "One two three. Four five six.",
        "Four five six. Seven eight nine ten eleven twelve.",
        "A b c d e f g h.",
    ]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    words = [f"w{number}" for number in range(20)]
    chunks = cut(" ".join(words), Chunking(max_words=8, overlap_sentences=3))
    assert [len(chunk.text.split()) for chunk in chunks] == [8, 8, 4]
    assert chunks[0].text == " ".join(words[:8])
    assert chunks[-1].text.endswith("w19")


def test_a_text_of_one_endless_word_is_one_passage() -> None:
    assert [chunk.text for chunk in cut("x" * 100_000, Chunking(max_words=8))] == ["x" * 100_000]


def test_line_ends_inside_a_sentence_and_other_alphabets_are_kept() -> None:
    text = "Die Brücke\nwurde gebaut. これは文です。次の文です。 Ελληνικά; 😀 end."
    assert " ".join(chunk.text for chunk in cut(text, Chunking(overlap_sentences=0))).replace(" ", "") == text.replace(
        " ", ""
    )
