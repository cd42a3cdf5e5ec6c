"""The documents that an embedded target retrieves from: distinct contexts, the packaged sample, or a file."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from rag_eval_assets.canonical import is_unicode, sequence_hash, text_hash
from rag_eval_assets.dataset.examples import context_document_id, is_blank, read_roles, require_rows
from rag_eval_assets.dataset.packaged import sample_documents
from rag_eval_assets.dataset.rows import open_rows, shorten
from rag_eval_assets.dataset.sources import local_file, open_data_sets
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import CORPUS

CODE_VERSION = "2"
"""Raised whenever the same documents would give another `corpus` table."""


@dataclass(frozen=True)
class Document:
    """One document of the corpus."""

    id: str
    title: str | None
    text: str


@dataclass(frozen=True)
class DocumentSet:
    """All documents of a corpus, in the order of their source."""

    documents: tuple[Document, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Hash over the ordered ids and texts: any change of the corpus changes it."""
        return sequence_hash(f"{document.id}\t{text_hash(document.text)}" for document in self.documents)

    def manifest(self) -> pa.Table:
        """The corpus as table `tables.CORPUS`: hashes instead of texts."""
        rows = [
            {
                "document_id": document.id,
                "title": document.title,
                "text_sha256": text_hash(document.text),
                "characters": len(document.text),
            }
            for document in self.documents
        ]
        return pa.Table.from_pylist(rows, schema=CORPUS.schema)


def load_corpus(suite: LoadedSuite, *, offline: bool = False) -> DocumentSet:
    """Read the corpus of a suite; an empty set where the suite has none. With `offline` the hub is not asked.

    Raises:
        ConfigurationError: the source is missing or unreadable, an id stands twice, or there is no document.
    """
    corpus = suite.suite.corpus
    if corpus is None:
        return DocumentSet(())
    if corpus.source == "contexts":
        documents = _distinct_contexts(suite, offline=offline)
    else:
        documents = _read_documents(sample_documents() if corpus.file is None else local_file(suite, corpus.file))
    made = DocumentSet(tuple(documents))
    if not made.documents:
        if corpus.source == "contexts":
            require_rows(open_data_sets(suite, offline=offline))
        raise ConfigurationError(
            f"suite {suite.name!r}: its corpus ({corpus.source}) holds no document with text",
            fix="Check 'corpus' and, for contexts, the column mapping under 'datasets'",
        )
    return made


def _distinct_contexts(suite: LoadedSuite, *, offline: bool) -> Generator[Document]:
    seen: dict[str, str] = {}
    for data_set in open_data_sets(suite, offline=offline):
        for source, row, values in read_roles(data_set, required=("context",)):
            context = values["context"]
            if context is None or is_blank(context) or not is_unicode(context):
                continue
            document_id = values.get("context_id") or context_document_id(context)
            if not is_unicode(document_id):
                continue
            digest = text_hash(context)
            if document_id not in seen:
                seen[document_id] = digest
                yield Document(document_id, None, context)
            elif seen[document_id] != digest:
                raise ConfigurationError(
                    f"suite {suite.name!r}: document id {shorten(document_id)} stands for two different contexts, "
                    f"the second in {source.name} {row.place}",
                    fix="Give each context an id of its own, or none, or list the documents in a file of their own",
                )


def _read_documents(path: Path) -> Generator[Document]:
    source = open_rows(path)
    missing = [column for column in ("id", "text") if column not in source.columns]
    if missing:
        raise ConfigurationError(
            f"corpus file {source.name!r} has no column {missing[0]!r}; it has {source.shown_columns}",
            fix=source.hint or "Its documents need the columns id and text, and may have title",
        )
    source.require_flat(column for column in ("id", "text", "title") if column in source.columns)
    source.require_text(column for column in ("text", "title") if column in source.columns)
    places: dict[str, str] = {}
    for row in source.read([column for column in ("id", "title", "text") if column in source.columns]):
        document_id, text = row.values["id"], row.values["text"]
        if text is None or is_blank(text):
            continue
        if document_id is None or is_blank(document_id):
            raise ConfigurationError(f"corpus file {source.name!r} {row.place}: a document without id")
        if not all(value is None or is_unicode(value) for value in row.values.values()):
            raise ConfigurationError(
                f"corpus file {source.name!r} {row.place}: lone surrogates, so this is no Unicode text"
            )
        if document_id in places:
            raise ConfigurationError(
                f"corpus file {source.name!r}: document id {shorten(document_id)} stands twice, "
                f"{places[document_id]} and {row.place}"
            )
        places[document_id] = row.place
        yield Document(document_id, row.values.get("title"), text)
