"""Console and progress bars, on a duplicate of stderr, since Dagster redirects stderr while a step runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rag_eval_assets.progress import LogReporter, Reporter, Stage


@cache
def stderr() -> Console:
    """The console for people: messages, tables, progress."""
    try:
        stream = os.fdopen(os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2), "w", encoding="utf-8", buffering=1)
    except (OSError, ValueError):
        return Console(stderr=True, highlight=False)
    return Console(file=stream, highlight=False)


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self.task = task

    def advance(self, count: int = 1) -> None:
        self._progress.advance(self.task, count)


class BarReporter:
    """Shows each running stage as a bar; a finished one keeps its line."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def stage(self, name: str, total: int, unit: str) -> Stage:
        return _Bar(self._progress, self._progress.add_task(name, total=total, unit=unit))

    def close(self, stage: Stage) -> None:
        if isinstance(stage, _Bar):
            self._progress.stop_task(stage.task)


@contextmanager
def progress_reporter(*, quiet: bool) -> Generator[Reporter]:
    """Bars on a terminal, a line every ten seconds elsewhere, nothing where `quiet`."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield LogReporter(_nothing if quiet else console.print)
        return
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]:<8}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield BarReporter(progress)


def _nothing(line: str) -> None:
    del line
