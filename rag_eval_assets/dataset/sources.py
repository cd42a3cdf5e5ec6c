"""Opening the data sets that a suite names: local files, the packaged sample, the Hugging Face hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rag_eval_assets.dataset.hub import hub_files
from rag_eval_assets.dataset.packaged import sample_questions
from rag_eval_assets.dataset.rows import RowSource, open_rows, shorten
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.models import Columns, FileDataSet, HuggingFaceDataSet, RandomSample, Where

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "question": ("question", "input"),
    "reference_answer": ("reference_answer", "answer", "reference", "expected"),
    "context": ("context",),
    "context_id": ("context_id", "document_id"),
}
"""Column names that are understood without a mapping; `input` and `expected` are EvalCore's."""


@dataclass(frozen=True)
class OpenDataSet:
    """A data set that is ready to be read: its files in order, and the names that the report shows."""

    name: str
    split: str | None
    revision: str | None
    sources: tuple[RowSource, ...]
    columns: Columns
    where: Where
    random_sample: RandomSample | None
    limit: int | None


def open_data_sets(suite: LoadedSuite, *, offline: bool = False) -> list[OpenDataSet]:
    """Open every data set of a suite, in order; with `offline` the hub is not asked.

    Raises:
        ConfigurationError: a file is missing or unreadable, or the hub's files cannot be had.
    """
    opened: list[OpenDataSet] = []
    for config in suite.suite.datasets:
        if isinstance(config, FileDataSet):
            sources = tuple(open_rows(local_file(suite, file), config.format) for file in config.files)
            name, revision = " + ".join(dict.fromkeys(Path(file).stem for file in config.files)), None
        elif isinstance(config, HuggingFaceDataSet):
            lock = suite.path.with_name(f"{suite.path.stem}.lock.json")
            place = f"a copy of the packaged suite {suite.path}" if suite.is_packaged else suite.path.name
            revision, files = hub_files(config, lock=lock, suite=place, offline=offline)
            name, sources = config.huggingface, tuple(open_rows(file) for file in files)
        else:
            name, revision, sources = "sample", None, (sample_questions(),)
        chosen = (config.where, config.random_sample, config.limit)
        opened.append(OpenDataSet(config.name or name, config.split, revision, sources, config.columns, *chosen))
    return opened


def local_file(suite: LoadedSuite, path: str) -> Path:
    """A file that the suite names, by the name that it has there.

    A link is not followed yet: what the hub's cache links to has neither a telling name nor an ending.

    Raises:
        ConfigurationError: the path is not usable.
    """
    suite.resolve(path)
    return suite.path.parent / Path(path).expanduser()


def pick_columns(source: RowSource, mapping: Columns, *, required: tuple[str, ...]) -> dict[str, str]:
    """Role (question, context...) to column name of `source`, by the mapping or by the usual names.

    Raises:
        ConfigurationError: a mapped column is not there, a required role has none, or two usual names compete.
    """
    picked: dict[str, str] = {}
    for role, usual in USUAL_NAMES.items():
        named: str | None = getattr(mapping, role)
        if role in mapping.left_out:
            if role in required:
                raise ConfigurationError(
                    f"data file {source.name!r}: 'columns: {{{role}: null}}' leaves out the {role}, which is needed",
                    fix=f"Name its column; the file has {source.shown_columns}",
                )
            continue
        if named is not None:
            if named not in source.columns:
                raise _no_column(source, f"column {shorten(named)} (columns.{role})")
            picked[role] = named
            continue
        # Written otherwise (`Answer`, or ` answer` after a comma) a usual name is still understood: the column would
        # else be left out without a word, since most roles are optional.
        present = [name for name in usual if name in source.columns] or [
            column for column in source.columns if column.strip().casefold() in usual
        ]
        if len(present) > 1:
            raise ConfigurationError(
                f"data file {source.name!r}: {' and '.join(map(repr, present))} could both be the {role}",
                fix=f"Say which with 'columns: {{{role}: {present[0]}}}'",
            )
        if present:
            picked[role] = present[0]
        elif role in required:
            raise _no_column(source, f"column for the {role} (looked for {', '.join(usual)})")
    return picked


def _no_column(source: RowSource, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"data file {source.name!r} has no {what}; it has {source.shown_columns}",
        fix=source.hint or "Map it under 'columns' in the suite",
    )
