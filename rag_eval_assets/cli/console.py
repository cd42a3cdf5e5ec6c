"""Consoles and progress bars; those for stderr are on a duplicate of it, since Dagster redirects stderr in a step."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rag_eval_assets.progress import LogReporter, Reporter, Stage
from rag_eval_assets.terminal import sanitize

WIDE = 60
"""Columns that a bar needs beside its name and numbers to tell more than they do."""


def stdout() -> Console:
    """The console for results."""
    return Console(highlight=False, emoji=False)


@cache
def stderr() -> Console:
    """The console for people: progress, errors, what is going on."""
    try:
        copy = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        # Open as long as the process is.
        stream = os.fdopen(copy, "w", encoding="utf-8", buffering=1, closefd=False)
    except (OSError, ValueError):
        return Console(stderr=True, highlight=False, emoji=False)
    return Console(file=stream, highlight=False, emoji=False)


def print_error(error: BaseException) -> None:
    """Print an error as the one line that it is to scripts: never wrapped, so that paths in it can be copied."""
    text = " ".join(line.strip() for line in str(error).splitlines())
    stderr().print(f"error: {sanitize(text)}", style="red", markup=False, soft_wrap=True)


class _Count(ProgressColumn):
    """`done/total`, and nothing where there is no total."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")


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
        # Imports and models take seconds before the first stage opens, and a still screen looks like a hang.
        self._starting: TaskID | None = progress.add_task("starting", total=None, unit="")

    def stage(self, name: str, total: int, unit: str) -> Stage:
        if self._starting is not None:
            self._progress.remove_task(self._starting)
            self._starting = None
        return _Bar(self._progress, self._progress.add_task(name, total=total, unit=unit))

    def close(self, stage: Stage) -> None:
        if isinstance(stage, _Bar):
            self._progress.stop_task(stage.task)

    def warn(self, line: str) -> None:
        text = f"warning: {sanitize(line)}"
        self._progress.console.print(text, style="yellow", markup=False, soft_wrap=True)


@contextmanager
def progress_reporter(*, quiet: bool) -> Generator[Reporter]:
    """Bars on a terminal, a line every ten seconds elsewhere, nothing where `quiet`."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield LogReporter(_nothing if quiet else console.print)
        return
    name, time = TextColumn("{task.description:<18}"), TimeRemainingColumn(compact=True, elapsed_when_finished=True)
    bar, unit = BarColumn(), TextColumn("{task.fields[unit]:<8}")
    wide = console.width >= WIDE
    columns = (name, bar, _Count(), unit, time) if wide else (name, _Count(), time)
    with Progress(*columns, console=console) as progress:
        yield BarReporter(progress)


def _nothing(line: str) -> None:
    del line
