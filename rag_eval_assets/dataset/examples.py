"""Raw rows made into the examples of a run: ids, hashes, exclusions, the fingerprint of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

import pyarrow as pa

from rag_eval_assets.canonical import content_hash, is_unicode, sequence_hash, text_hash
from rag_eval_assets.dataset.rows import BATCH_ROWS, RawRow, RowSource, shorten
from rag_eval_assets.dataset.selection import choose, condition_columns, describe, satisfies
from rag_eval_assets.dataset.sources import OpenDataSet, open_data_sets, pick_columns
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.models import Where
from rag_eval_assets.tables import EVAL_EXAMPLES
from rag_eval_assets.wording import counted, counted_doing

CODE_VERSION = "2"
"""Raised whenever the same rows would give another `eval_examples` table."""


_INVISIBLE = ("Cc", "Cf")  # Unicode's categories: control, format

NUMBER_THEM = "Make the ids unique, or have the rows numbered: 'columns: {id: null}' in the suite"
"""What to do about an id that stands twice."""

CHECK_MAPPING = "Check the column mapping and, if there is one, 'where' under 'datasets'"

ID_ROLES = frozenset({"id", "context_id"})
"""Roles that a column of whole numbers can have; the others need text."""


@dataclass(frozen=True)
class Excluded:
    """A row that is no example: where it stands and why."""

    source: str
    row: int
    reason: str


@dataclass(frozen=True)
class ExampleSet:
    """The examples of a run.

    Attributes:
        table: schema `tables.EVAL_EXAMPLES`, in the order of the data sets.
        excluded: rows that are no example.
        fingerprint: hash of the ordered row hashes.
        name, split, revision: of the data sets, joined with ` + ` where there are several.
        total: how many examples there were before `limit`.
        selection: what the suite chose of its data sets, in words; None where it chose all.
    """

    table: pa.Table
    excluded: list[Excluded]
    fingerprint: str
    name: str
    split: str | None
    revision: str | None
    total: int
    selection: str | None

    def gaps(self) -> list[str]:
        """What rows lack that are asked all the same, and what is left out for them, in words."""
        blank = {
            role: [text is None or is_blank(str(text)) for text in self.table[role].to_pylist()]
            for role in ("reference_answer", "context", "context_id")
        }
        no_reference = sum(blank["reference_answer"])
        no_context = sum(map(all, zip(blank["context"], blank["context_id"], strict=True)))
        told = [(no_reference, "reference answer", "not scored"), (no_context, "context", "not judged for retrieval")]
        return [f"{counted(n, 'row')} without a {what}: asked, but {left_out}" for n, what, left_out in told if n]

    def facts(self) -> dict[str, Any]:
        """What the report says of the data set beside the rows, as JSON."""
        return {
            "name": self.name,
            "split": self.split,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "total": self.total,
            "selection": self.selection,
            "excluded": [{"source": e.source, "row": e.row, "reason": e.reason} for e in self.excluded],
        }


@dataclass
class _Collector:
    """Examples under construction, with the places of their ids so that a duplicate names both.

    Rows become Arrow batch by batch: as Python objects, long texts would take several times their size.
    """

    contexts_are_corpus: bool
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    batches: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    excluded: list[Excluded] = field(default_factory=list[Excluded])
    places: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, source: str, prefix: str, row: RawRow, values: dict[str, str | None]) -> None:
        question = values.get("question")
        if question is None or is_blank(question):
            self.excluded.append(Excluded(source, row.number, "no question"))
            return
        broken = [role for role, text in values.items() if text is not None and not is_unicode(text)]
        if broken:
            self.excluded.append(Excluded(source, row.number, f"lone surrogates in {', '.join(broken)}"))
            return
        given = values.get("id")
        example_id = f"{prefix}row-{row.number}" if given is None or is_blank(given) else given
        place = f"{source} {row.place}"
        if example_id in self.places:
            raise ConfigurationError(
                f"example id {shorten(example_id)} stands twice: {self.places[example_id]} and {place}",
                fix=NUMBER_THEM,
            )
        self.places[example_id] = place
        reference, context = values.get("reference_answer"), values.get("context")
        context_id = values.get("context_id")
        if context_id is None and context and not is_blank(context) and self.contexts_are_corpus:
            context_id = context_document_id(context)
        self.rows.append(
            {
                "example_id": example_id,
                "question": question,
                "reference_answer": reference,
                "context": context,
                "context_id": context_id,
                "source": source,
                "source_row": row.number,
                "row_sha256": content_hash([question, reference, context]),
            }
        )
        if len(self.rows) == BATCH_ROWS:
            self._close_batch()

    def take(self) -> pa.Table:
        """The examples since the last time."""
        self._close_batch()
        batches, self.batches = self.batches, []
        return pa.Table.from_batches(batches, schema=EVAL_EXAMPLES.schema)

    def _close_batch(self) -> None:
        self.batches.append(pa.RecordBatch.from_pylist(self.rows, schema=EVAL_EXAMPLES.schema))
        self.rows.clear()


def is_blank(text: str) -> bool:
    """Whether `text` shows nothing: all of it is white space, control or format characters (zero-width space, say)."""
    return not any(category(character) not in _INVISIBLE and not character.isspace() for character in text)


def context_document_id(context: str) -> str:
    """Document id of a context where the contexts are the corpus: equal texts are one document."""
    return f"ctx-{text_hash(context)[:16]}"


def load_examples(suite: LoadedSuite, limit: int | None = None, *, offline: bool = False) -> ExampleSet:
    """Read the examples of a suite.

    Args:
        suite: the suite.
        limit: only the first so many examples.
        offline: the hub is not asked, its cache is enough or they cannot be had.

    Raises:
        ConfigurationError: a source is missing or unreadable, a column is missing, an id stands twice, or there is
            no example at all.
    """
    corpus = suite.suite.corpus
    collector = _Collector(contexts_are_corpus=corpus is not None and corpus.source == "contexts")
    opened = open_data_sets(suite, offline=offline)
    prefixes = _prefixes([source for data_set in opened for source in data_set.sources])
    chosen: list[pa.Table] = []
    for data_set in opened:
        for source, row, values in read_roles(data_set, required=("question",), where=data_set.where):
            if satisfies(row.values, data_set.where):
                collector.add(source.name, prefixes[id(source)], row, values)
        chosen.append(choose(collector.take(), data_set.random_sample, data_set.limit))
    examples = pa.concat_tables(chosen)
    if not examples.num_rows:
        require_rows(opened)
        without = counted_doing(len(collector.excluded), "row", "has", "have")
        raise ConfigurationError(
            f"suite {suite.name!r}: its data sets hold no example ({without} no question)",
            fix=CHECK_MAPPING,
        )
    kept = examples[:limit]
    hashes: list[Any] = kept["row_sha256"].to_pylist()
    return ExampleSet(
        table=kept,
        excluded=collector.excluded,
        fingerprint=sequence_hash(hashes),
        name=" + ".join(dict.fromkeys(d.name for d in opened)),
        split=" + ".join(dict.fromkeys(d.split for d in opened if d.split)) or None,
        revision=" + ".join(dict.fromkeys(d.revision for d in opened if d.revision)) or None,
        total=examples.num_rows,
        selection="; ".join(filter(None, (describe(d.where, d.random_sample, d.limit) for d in opened))) or None,
    )


def require_rows(opened: list[OpenDataSet]) -> None:
    """Raise ConfigurationError where no file of the data sets has a row: to be asked where nothing came of them."""
    sources = [source for data_set in opened for source in data_set.sources]
    if all(next(source.read([]), None) is None for source in sources):
        names = " and ".join(repr(source.name) for source in sources)
        raise ConfigurationError(
            f"data file {names} has a header and no row"
            if len(sources) == 1
            else f"data files {names} have a header and no row",
            fix="Write the questions below the header",
        )


def _prefixes(sources: list[RowSource]) -> dict[int, str]:
    """What the derived ids of each source (by its `id()`) begin with: its name, numbered where names are equal."""
    if len(sources) == 1:
        return {id(sources[0]): ""}
    seen: Counter[str] = Counter()
    prefixes: dict[int, str] = {}
    for source in sources:
        stem = source.name.rsplit(".", 1)[0]
        seen[stem] += 1
        prefixes[id(source)] = f"{stem}-" if seen[stem] == 1 else f"{stem}~{seen[stem]}-"
    return prefixes


def read_roles(
    data_set: OpenDataSet, *, required: tuple[str, ...], where: Where | None = None
) -> Generator[tuple[RowSource, RawRow, dict[str, str | None]]]:
    """Every row of a data set with its values by role (question, context...) instead of by column.

    The raw row has the columns of the roles and those that `where` looks at.
    """
    for source in data_set.sources:
        picked = pick_columns(source, data_set.columns, required=required)
        source.require_text(column for role, column in picked.items() if role not in ID_ROLES)
        source.require_flat(column for role, column in picked.items() if role != "reference_answer")
        columns = [*picked.values(), *condition_columns(source, where or {})]
        for row in source.read(list(dict.fromkeys(columns))):
            yield source, row, {role: row.values[column] for role, column in picked.items()}
