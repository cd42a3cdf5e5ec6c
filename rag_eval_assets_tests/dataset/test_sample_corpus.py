"""The sample corpus that ships with the package: its documents, its questions and the spans that support answers."""

import json
import re
from collections import Counter
from difflib import SequenceMatcher
from importlib import resources
from itertools import pairwise
from typing import Any

import pytest

LEAST_PER_KIND = {
    "fact": 25,
    "number": 15,
    "date": 12,
    "two_sentences": 15,
    "negation": 10,
    "confusable": 10,
    "unanswerable": 6,
}
CONFUSABLE_PAIRS = [
    ("ferry-winter-timetable", "ferry-summer-timetable"),
    ("dorrin-20-manual", "dorrin-30-manual"),
    ("bus-fares-2023", "bus-fares-2024"),
    ("kessock-p4-repair", "kessock-p5-repair"),
    ("tidal-museum-groups", "tidal-museum-schools"),
]
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
SENTENCE_ENDS = (".", "!", "?")


def load_rows(name: str) -> list[dict[str, Any]]:
    path = resources.files("rag_eval_assets.dataset") / "sample" / name
    return [json.loads(line) for line in path.read_bytes().decode("utf-8").split("\n") if line]


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return load_rows("documents.jsonl")


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    return load_rows("questions.jsonl")


@pytest.fixture(scope="module")
def texts(documents: list[dict[str, Any]]) -> dict[str, str]:
    return {document["id"]: document["text"] for document in documents}


def answerable(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [question for question in questions if question["kind"] != "unanswerable"]


def supporting_texts(question: dict[str, Any], texts: dict[str, str]) -> list[str]:
    text = texts[question["document_id"]]
    return [text[span["start"] : span["end"]] for span in question["support"]]


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(text))


@pytest.mark.parametrize("name", ["documents.jsonl", "questions.jsonl"])
def test_files_use_plain_line_feeds_and_end_with_one(name: str) -> None:
    content = (resources.files("rag_eval_assets.dataset") / "sample" / name).read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"}\n")
    assert b"\n\n" not in content


def test_corpus_has_at_least_30_documents_and_100_questions(
    documents: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    assert len(documents) >= 30
    assert len(questions) >= 100


def test_every_row_has_exactly_the_expected_keys(
    documents: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    question_keys = {"id", "question", "reference_answer", "document_id", "kind", "support"}
    assert all(set(document) == {"id", "title", "text"} for document in documents)
    assert all(set(question) == question_keys for question in questions)


def test_document_ids_are_unique_kebab_case_slugs(documents: list[dict[str, Any]]) -> None:
    ids = [document["id"] for document in documents]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", document_id) for document_id in ids)


def test_question_ids_and_wordings_are_unique(questions: list[dict[str, Any]]) -> None:
    assert len({question["id"] for question in questions}) == len(questions)
    assert len({question["question"] for question in questions}) == len(questions)


def test_every_document_has_150_to_600_words(documents: list[dict[str, Any]]) -> None:
    outside = {d["id"]: len(d["text"].split()) for d in documents if not 150 <= len(d["text"].split()) <= 600}
    assert outside == {}


def test_questions_cover_every_kind_and_no_other(questions: list[dict[str, Any]]) -> None:
    assert {question["kind"] for question in questions} == set(LEAST_PER_KIND)


@pytest.mark.parametrize(("kind", "least"), LEAST_PER_KIND.items())
def test_every_kind_has_enough_questions(kind: str, least: int, questions: list[dict[str, Any]]) -> None:
    assert Counter(question["kind"] for question in questions)[kind] >= least


def test_every_answerable_question_points_at_an_existing_document(
    questions: list[dict[str, Any]], texts: dict[str, str]
) -> None:
    dangling = [question["id"] for question in answerable(questions) if question["document_id"] not in texts]
    assert dangling == []


def test_every_document_is_asked_about(questions: list[dict[str, Any]], texts: dict[str, str]) -> None:
    assert {question["document_id"] for question in answerable(questions)} == set(texts)


def test_every_answerable_question_has_support(questions: list[dict[str, Any]]) -> None:
    assert [question["id"] for question in answerable(questions) if not question["support"]] == []


def test_support_spans_are_non_empty_and_lie_inside_the_text(
    questions: list[dict[str, Any]], texts: dict[str, str]
) -> None:
    for question in answerable(questions):
        length = len(texts[question["document_id"]])
        for span in question["support"]:
            assert 0 <= span["start"] < span["end"] <= length, question["id"]


def test_support_spans_are_ordered_and_do_not_overlap(questions: list[dict[str, Any]]) -> None:
    for question in answerable(questions):
        spans = question["support"]
        assert all(left["end"] <= right["start"] for left, right in pairwise(spans)), question["id"]


def test_support_spans_are_whole_sentences(questions: list[dict[str, Any]], texts: dict[str, str]) -> None:
    for question in answerable(questions):
        text = texts[question["document_id"]]
        for span in question["support"]:
            sentence = text[span["start"] : span["end"]]
            before, after = text[: span["start"]], text[span["end"] :]
            assert sentence == sentence.strip(), question["id"]
            assert sentence.endswith(SENTENCE_ENDS), question["id"]
            assert not before or (before[-1].isspace() and before.rstrip().endswith(SENTENCE_ENDS)), question["id"]
            assert not after or after[0].isspace(), question["id"]


def test_support_sentences_occur_once_in_their_document(questions: list[dict[str, Any]], texts: dict[str, str]) -> None:
    for question in answerable(questions):
        for sentence in supporting_texts(question, texts):
            assert texts[question["document_id"]].count(sentence) == 1, question["id"]


def test_numbers_of_the_reference_answer_occur_in_the_support(
    questions: list[dict[str, Any]], texts: dict[str, str]
) -> None:
    for question in answerable(questions):
        supported = numbers(" ".join(supporting_texts(question, texts)))
        assert numbers(question["reference_answer"]) <= supported, question["id"]


def test_reference_answers_are_worded_afresh(questions: list[dict[str, Any]], texts: dict[str, str]) -> None:
    copied = [q["id"] for q in answerable(questions) if q["reference_answer"] == " ".join(supporting_texts(q, texts))]
    assert copied == []


def test_two_sentence_questions_have_two_spans(questions: list[dict[str, Any]]) -> None:
    counts = {q["id"]: len(q["support"]) for q in questions if q["kind"] == "two_sentences"}
    assert counts and set(counts.values()) == {2}


@pytest.mark.parametrize(("left", "right"), CONFUSABLE_PAIRS)
def test_confusable_documents_are_alike_but_differ_in_their_numbers(
    left: str, right: str, texts: dict[str, str]
) -> None:
    alike = SequenceMatcher(None, texts[left].split(), texts[right].split(), autojunk=False).ratio()
    assert alike >= 0.5
    assert numbers(texts[left]) != numbers(texts[right])


@pytest.mark.parametrize("pair", CONFUSABLE_PAIRS)
def test_every_confusable_pair_is_asked_about(pair: tuple[str, str], questions: list[dict[str, Any]]) -> None:
    asked = [q["id"] for q in questions if q["kind"] == "confusable" and q["document_id"] in pair]
    assert asked


def test_confusable_questions_point_at_a_document_of_a_pair(questions: list[dict[str, Any]]) -> None:
    paired = {document_id for pair in CONFUSABLE_PAIRS for document_id in pair}
    assert {q["document_id"] for q in questions if q["kind"] == "confusable"} <= paired


def test_unanswerable_questions_have_no_document_and_no_support(questions: list[dict[str, Any]]) -> None:
    unanswerable = [question for question in questions if question["kind"] == "unanswerable"]
    assert unanswerable
    assert all(question["document_id"] is None and question["support"] == [] for question in unanswerable)
