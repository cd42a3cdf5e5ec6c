"""The documents of a corpus: distinct contexts, the packaged sample, or a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.canonical import text_hash
from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import context_document_id, load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite, load_suite
from rag_eval_assets.tables import CORPUS

SuiteOver = Callable[..., LoadedSuite]
Write = Callable[..., Path]

CONTEXTS = {"source": "contexts"}
FILE = {"source": "file", "file": "docs.jsonl"}


def test_equal_contexts_are_one_document_in_the_order_of_their_first_row(
    suite_over: SuiteOver, write_jsonl: Write
) -> None:
    write_jsonl("a.jsonl", *[{"question": "q", "context": text} for text in ("one", "two", "one", None, " ")])
    write_jsonl("b.jsonl", *[{"question": "q", "context": text} for text in ("three", "two", "One")])
    documents = load_corpus(suite_over("a.jsonl", "b.jsonl", corpus=CONTEXTS)).documents
    assert [document.text for document in documents] == ["one", "two", "three", "One"]
    assert [document.id for document in documents] == [context_document_id(document.text) for document in documents]


def test_a_row_without_a_question_still_gives_its_context(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "q", "context": "one"}, {"question": None, "answer": None, "context": "two"})
    suite = suite_over("d.jsonl", corpus=CONTEXTS)
    assert [document.text for document in load_corpus(suite).documents] == ["one", "two"]
    assert load_examples(suite).total == 1


def test_every_context_id_of_the_examples_is_a_document(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", *[{"question": "q", "context": f"text {number % 7}"} for number in range(20)])
    suite = suite_over("d.jsonl", corpus=CONTEXTS)
    ids = {document.id for document in load_corpus(suite).documents}
    assert set(load_examples(suite).table.column("context_id").to_pylist()) == ids


def test_the_datas_own_document_ids_are_kept(suite_over: SuiteOver, write_jsonl: Write) -> None:
    row = {"question": "q", "context": "one", "document_id": "d1"}
    write_jsonl("d.jsonl", row, row)
    documents = load_corpus(suite_over("d.jsonl", corpus=CONTEXTS)).documents
    assert [(document.id, document.text) for document in documents] == [("d1", "one")]


def test_one_id_for_two_different_contexts_is_named(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", *[{"question": "q", "context": text, "document_id": "d1"} for text in ("one", "two")])
    with pytest.raises(
        ConfigurationError, match=r"'d1' stands for two different contexts, the second in d\.jsonl line 2"
    ):
        load_corpus(suite_over("d.jsonl", corpus=CONTEXTS))


def test_lone_surrogates_in_a_context_leave_it_out_as_they_do_the_row(
    suite_over: SuiteOver, write_jsonl: Write
) -> None:
    write_jsonl("d.jsonl", {"question": "q", "context": "one"}, {"question": "q", "context": "half \ud83d"})
    assert [d.text for d in load_corpus(suite_over("d.jsonl", corpus=CONTEXTS)).documents] == ["one"]


def test_contexts_need_a_context_column_and_at_least_one_text(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl("d.jsonl", {"question": "q"})
    with pytest.raises(ConfigurationError, match=r"'d\.jsonl' has no column for the context .* it has 'question'"):
        load_corpus(suite_over("d.jsonl", corpus=CONTEXTS))
    write_jsonl("d.jsonl", {"question": "q", "context": " "})
    with pytest.raises(ConfigurationError, match=r"'tested': its corpus \(contexts\) holds no document with text"):
        load_corpus(suite_over("d.jsonl", corpus=CONTEXTS))


def test_a_file_gives_ids_texts_and_titles(suite_over: SuiteOver, write_jsonl: Write) -> None:
    write_jsonl(
        "docs.jsonl", {"id": "b", "text": "ü😀", "title": "T"}, {"id": "a", "text": "x"}, {"id": "c", "text": " "}
    )
    corpus = load_corpus(suite_over("d.jsonl", corpus=FILE))
    assert [(d.id, d.text, d.title) for d in corpus.documents] == [("b", "ü😀", "T"), ("a", "x", None)]
    assert corpus.manifest().schema.equals(CORPUS.schema, check_metadata=True)
    assert corpus.manifest().to_pylist() == [
        {"document_id": "b", "title": "T", "text_sha256": text_hash("ü😀"), "characters": 2},
        {"document_id": "a", "title": None, "text_sha256": text_hash("x"), "characters": 1},
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "document id 'a' stands twice, line 1 and line 2"),
        ([{"id": "a", "body": "x"}], "has no column 'text'; it has 'id', 'body'"),
        ([{"text": "x"}], "has no column 'id'; it has 'text'"),
        ([{"id": "a", "text": "x"}, {"id": None, "text": "y"}], "line 2: a document without id"),
        ([{"id": "a", "text": "half \ud83d"}], "line 1: lone surrogates"),
        ([{"id": "a", "text": ""}], "holds no document with text"),
    ],
)
def test_a_faulty_file_is_named(
    suite_over: SuiteOver, write_jsonl: Write, rows: list[dict[str, str]], message: str
) -> None:
    write_jsonl("docs.jsonl", *rows)
    with pytest.raises(ConfigurationError, match=message):
        load_corpus(suite_over("d.jsonl", corpus=FILE))


def test_the_fingerprint_sees_ids_texts_and_order(suite_over: SuiteOver, write_jsonl: Write) -> None:
    a, b = {"id": "a", "text": "x"}, {"id": "b", "text": "y"}
    fingerprints: list[str] = []
    for rows in ([a, b], [b, a], [a], [a, {**b, "text": "z"}], [a, {**b, "id": "c"}]):
        write_jsonl("docs.jsonl", *rows)
        fingerprints.append(load_corpus(suite_over("d.jsonl", corpus=FILE)).fingerprint)
    assert len(set(fingerprints)) == len(fingerprints)
    write_jsonl("docs.jsonl", a, {**b, "title": "only a title"})
    assert load_corpus(suite_over("d.jsonl", corpus=FILE)).fingerprint == fingerprints[0]


def test_the_packaged_questions_point_at_packaged_documents() -> None:
    suite = load_suite("embedded")
    documents = {document.id: document.text for document in load_corpus(suite).documents}
    rows = load_examples(suite).table.to_pylist()
    assert {row["context"] for row in rows if row["context_id"]} <= set(documents.values())
    assert all(documents[row["context_id"]] == row["context"] for row in rows if row["context_id"])
    assert any(row["context_id"] is None and row["context"] is None for row in rows)
