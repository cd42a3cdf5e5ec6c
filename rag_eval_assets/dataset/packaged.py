"""The packaged sample: documents and questions about a fictional region, written for this project."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib import resources
from pathlib import Path

from rag_eval_assets.dataset.rows import RawRow, RowSource, open_rows


def sample_documents() -> Path:
    """The JSON Lines file of the sample's documents (id, title, text)."""
    return Path(str(resources.files("rag_eval_assets.dataset") / "sample" / "documents.jsonl"))


def sample_questions() -> RowSource:
    """The sample's questions, each with the text of its document as its context (none where unanswerable)."""
    questions = open_rows(sample_documents().with_name("questions.jsonl"))

    def read(columns: Sequence[str]) -> Generator[RawRow]:
        texts = {row.values["id"]: row.values["text"] for row in open_rows(sample_documents()).read(("id", "text"))}
        for row in questions.read(("id", "question", "reference_answer", "document_id")):
            document_id = row.values["document_id"]
            context = None if document_id is None else texts[document_id]
            values = {**row.values, "context": context}
            yield RawRow(row.number, row.place, {column: values[column] for column in columns})

    return RowSource(questions.name, ("id", "question", "reference_answer", "context", "document_id"), read)
