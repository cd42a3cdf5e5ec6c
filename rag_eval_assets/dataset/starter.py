"""A first suite over a file of one's own: which column holds what is told by the columns' names, and the rest is plain.

It is only written once it is known to load; the file is then its owner's to change.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import CHECK_MAPPING, NUMBER_THEM, load_examples
from rag_eval_assets.dataset.lookalikes import NAME_PARQUET
from rag_eval_assets.dataset.rows import CHECK_FILE, MAP_ANOTHER, NAME_FORMAT, RowSource, open_rows, shorten
from rag_eval_assets.dataset.sources import USUAL_NAMES
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import DATA_ENDINGS, parse_suite

FURTHER_NAMES: dict[str, tuple[str, ...]] = {
    "question": ("query", "prompt", "user_input", "user_query", "user_question", "q"),
    "reference_answer": (
        *("expected_answer", "expected_output", "expected_response", "correct_answer", "ground_truth"),
        *("gold", "gold_answer", "golden_answer", "ideal", "ideal_answer", "target", "a"),
    ),
    "context": ("source_text", "document_text", "passage", "paragraph", "text", "content"),
    "id": ("question_id", "example_id", "row_id", "uuid", "key"),
}
"""Names that other tools and people give these columns; a suite does not guess by them, so they are written into it."""

OPTIONS = {"question": "--question", "reference_answer": "--answer", "context": "--context", "id": "--id"}
"""Role to the option that names its column."""

NUMBERED = ""
"""As the id's column: there is none, and the rows are numbered."""

_FIXES = {
    NAME_FORMAT: f"Rename it to what it holds: {', '.join(sorted(DATA_ENDINGS))}",
    NAME_PARQUET: "Rename it, so that it ends in .parquet",
    MAP_ANOTHER: "Name another column: --question, --answer, --context or --id",
    CHECK_MAPPING: "Name the column of the question: --question COLUMN",
    CHECK_FILE: "Give a parquet, jsonl or csv file",
    NUMBER_THEM: "Make the ids unique, or have the rows numbered: --id ''",
}
"""What a suite says of its data, and what there is to do where no suite is there yet."""

_TEMPLATE = """\
# {data}, to be evaluated with `rag-eval run {suite}`.
# All keys: `rag-eval schema suite`, or docs/suites.md.
datasets:
  - file: {file} # relative to this file
    columns:
{columns}

corpus:
{corpus}

targets:
  pipeline:
    type: embedded # dense retrieval and extractive answers, inside this process
    top_k: 5 # passages that are retrieved for a question

scorers:
  - type: bertscore
    model: all-MiniLM-L6-v2 # without this line bert-base-uncased, which has to be downloaded
  - type: sentence_cosine

retrieval:
  k: 3 # a context counts as found when it is among the first 3 passages
"""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


@dataclass(frozen=True)
class Starter:
    """A suite that is ready to be written.

    Attributes:
        text: content of the suite file.
        columns: role (question, reference_answer, context, id) to column.
        examples: how many questions it asks.
        excluded: how many rows ask nothing.
        gaps: what rows lack that are asked all the same, in words.
        documents: how many documents there are to retrieve from.
    """

    text: str
    columns: dict[str, str]
    examples: int
    excluded: int
    gaps: list[str]
    documents: int


def make_starter(data: Path, suite: Path, *, named: Mapping[str, str | None], documents: Path | None = None) -> Starter:
    """Make a suite over `data` for the file `suite`, and load all rows to see that it works. Writes nothing.

    Args:
        data: a parquet, jsonl or csv file.
        suite: where the suite is going to lie; paths in it are relative to its folder.
        named: role to column, where the person has named it; `NUMBERED` for the id where rows are to be numbered.
        documents: the documents to retrieve from; by default the distinct contexts of `data`.

    Raises:
        ConfigurationError: a file cannot be read, or a column cannot be told.
    """
    try:
        return _make(data, suite, named, documents)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, fix=_FIXES.get(error.fix or "", error.fix)) from error


def _make(data: Path, suite: Path, named: Mapping[str, str | None], documents: Path | None) -> Starter:
    _require_place(suite)
    source = open_rows(data)
    if documents is not None:
        open_rows(documents)
    columns = {role: column for role in OPTIONS if (column := _column(source, role, named.get(role))) is not None}
    for role in ("question", "reference_answer") if documents else ("question", "reference_answer", "context"):
        if role not in columns:
            raise _untold(source, role)
    numbered = ["      id: null # rows are numbered"] if named.get("id") == NUMBERED else []
    text = _TEMPLATE.format(
        data=_comment(data.name),
        suite=_comment(suite.name),
        file=_scalar(os.path.relpath(data, suite.parent)),
        columns="\n".join([f"      {role}: {_scalar(column)}" for role, column in columns.items()] + numbered),
        corpus=_corpus(documents, suite),
    )
    loaded = parse_suite(text, suite)
    examples = load_examples(loaded)
    found = len(load_corpus(loaded).documents)
    return Starter(text, columns, examples.total, len(examples.excluded), examples.gaps(), found)


def _column(source: RowSource, role: str, named: str | None) -> str | None:
    """The column of a role: the named one, else the only one with a usual name, else with a further name."""
    if role == "id" and named == NUMBERED:
        return None
    if named is not None:
        if named not in source.columns:
            raise ConfigurationError(
                f"data file {source.name!r} has no column {shorten(named)} ({OPTIONS[role]}); "
                f"it has {source.shown_columns}",
                fix=source.hint,
            )
        return named
    for names in (USUAL_NAMES[role], FURTHER_NAMES[role]):
        present = [column for column in source.columns if _folded(column) in names]
        if len(present) > 1:
            raise ConfigurationError(
                f"data file {source.name!r}: {' and '.join(map(repr, present))} could both be the {_words(role)}",
                fix=f"Say which: {OPTIONS[role]} {present[0]!r}",
            )
        if present:
            return present[0]
    return None


def _require_place(suite: Path) -> None:
    """Raise ConfigurationError where no suite could lie, or would not be taken for one."""
    if not suite.parent.is_dir():
        raise ConfigurationError(
            f"folder {str(suite.parent)!r} does not exist", fix="Make it, or choose another --output"
        )
    if suite.suffix.lower() in DATA_ENDINGS:
        raise ConfigurationError(
            f"--output is {str(suite)!r}, which is called like a data file",
            fix=f"Name the suite that is written: --output {suite.with_suffix('.yaml')}",
        )


def _untold(source: RowSource, role: str) -> ConfigurationError:
    files = ", or give the documents to retrieve from: --documents FILE" if role == "context" else ""
    return ConfigurationError(
        f"data file {source.name!r}: no column is called like the {_words(role)}; it has {source.shown_columns}",
        fix=source.hint or f"Name it: {OPTIONS[role]} COLUMN{files}",
    )


def _corpus(documents: Path | None, suite: Path) -> str:
    if documents is None:
        return "  source: contexts # the distinct contexts are the documents to retrieve from"
    file = _scalar(os.path.relpath(documents, suite.parent))
    return f"  source: file\n  file: {file} # columns id and text, perhaps title"


def _folded(name: str) -> str:
    """A column's name in the form of the lists above: `Expected answer` as `expected_answer`."""
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


def _words(role: str) -> str:
    return role.replace("_", " ")


def _comment(name: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in name)


def _scalar(text: str) -> str:
    """`text` as YAML: as it is where that is read as this text, else in double quotes, which are JSON's."""
    return text if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text else json.dumps(text)
