"""The one folder that everything local lives under, and the places in it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rag_eval_assets.errors import ConfigurationError


@dataclass(frozen=True)
class Home:
    """`RAG_EVAL_HOME` (default `./.rag-eval`); no folder is made before something is written to it."""

    root: Path

    @classmethod
    def from_environment(cls) -> Home:
        """The home that the environment names, as an absolute path.

        Raises:
            ConfigurationError: it begins with `~` and there is no such user, or its path holds `?` or `%`.
        """
        named = os.environ.get("RAG_EVAL_HOME") or ".rag-eval"
        try:
            root = Path(named).expanduser().resolve()
        except (RuntimeError, OSError) as error:
            raise ConfigurationError(f"RAG_EVAL_HOME {named!r} is no usable path ({error})") from error
        unusable = [mark for mark in "?%" if mark in str(root)]
        if unusable:
            raise ConfigurationError(
                f"RAG_EVAL_HOME {str(root)!r} holds {unusable[0]!r}, which misleads Dagster's database",
                fix="Choose a folder without '?' and '%' in its path",
            )
        return cls(root)

    @property
    def tables(self) -> Path:
        """Parquet tables of the lineage, `<suite>/<target>/<asset>/run_date=D/part-0.parquet`."""
        return self.root / "tables"

    @property
    def reports(self) -> Path:
        """Reports, laid out as on S3: `<env>/eval-runs/yyyy/mm/dd/<run_id>.json`."""
        return self.root / "reports"

    @property
    def spool(self) -> Path:
        """Reports on their way to a bucket, a folder per run id; empty once all are delivered."""
        return self.root / "spool"

    @property
    def receipts(self) -> Path:
        """What was delivered to a bucket, a line per report."""
        return self.root / "delivered.jsonl"

    @property
    def journals(self) -> Path:
        """Answers of partitions that are not committed yet."""
        return self.root / "journals"

    def cassette(self, suite: str) -> Path:
        """Recordings of a packaged suite, by its slug; any other suite keeps them beside its file."""
        return self.root / "cassettes" / suite

    @property
    def cache(self) -> Path:
        """What can be deleted at any time and is computed again, such as the embedded target's index."""
        return self.root / "cache"

    @property
    def dagster(self) -> Path:
        """Dagster's own home: run history, event log, schedules."""
        return self.root / "dagster"
