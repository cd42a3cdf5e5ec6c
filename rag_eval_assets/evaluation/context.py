"""What every stage needs to know: which suite, which run date, where tables lie, and who watches."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

from rag_eval_assets.home import Home
from rag_eval_assets.progress import SILENT, Reporter
from rag_eval_assets.recording.channel import Channel, open_channel
from rag_eval_assets.recording.modes import ON_A_SCHEDULE, Modes
from rag_eval_assets.storage.store import StoredTable, TableKey, TableStore
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.names import SAMPLE_SUFFIX


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of a suite for one run date.

    Attributes:
        suite: what is evaluated.
        run_date: the partition, YYYY-MM-DD.
        home: where everything local lies.
        store: where the tables lie.
        modes: what each channel of calls does with its recordings.
        limit: only the first so many examples. Such a run is a sample: its tables, journal and report stand apart
            from those of the suite, and it leaves no history.
        only_failed: ask again only the questions whose call failed, and keep the other answers of the date.
        reporter: is told about progress.
    """

    suite: LoadedSuite
    run_date: str
    home: Home
    store: TableStore
    modes: Modes = ON_A_SCHEDULE
    limit: int | None = None
    only_failed: bool = False
    reporter: Reporter = SILENT

    @property
    def is_sample(self) -> bool:
        """Whether only a part of the examples is evaluated."""
        return self.limit is not None

    @property
    def namespace(self) -> str:
        """First part of every key: the suite's slug, with a suffix for samples."""
        return self.suite.slug + (SAMPLE_SUFFIX if self.is_sample else "")

    def channel(self, name: Literal["target", "embeddings"]) -> AbstractContextManager[Channel]:
        """The calls of one kind with the suite's recordings, for the time of a `with` block."""
        mode = self.modes.target if name == "target" else self.modes.embeddings
        folder = self.suite.cassette_folder or self.home.cassette(self.suite.slug)
        # The file's name alone, since the words end up in tables, where no path of this machine belongs.
        return open_channel(name, mode, folder, record_with=f"`rag-eval run {self.suite.argument} --cache auto`")

    def key(self, table: str, target: str | None = None) -> TableKey:
        """Key of a table of this evaluation; `target` is a target's name in the suite."""
        slug = None if target is None else self.suite.target_slugs[target]
        return TableKey(self.namespace, table, self.run_date, slug)


@dataclass(frozen=True)
class Outcome:
    """What a stage made, in terms that an orchestrator can show.

    Attributes:
        stored: the table that was written.
        counts: rows by status or kind.
        metrics: finite numbers worth plotting over run dates.
        preview: a few rows with short texts.
        notes: facts worth showing, by name.
        summary: a summary in Markdown, where the table itself says little.
    """

    stored: StoredTable
    counts: dict[str, int] = field(default_factory=dict[str, int])
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    preview: list[dict[str, str | int | float | bool | None]] = field(
        default_factory=list[dict[str, str | int | float | bool | None]]
    )
    notes: dict[str, str] = field(default_factory=dict[str, str])
    summary: str | None = None
