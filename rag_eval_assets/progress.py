"""Progress of long stages, told to whoever watches: a bar in a terminal, or a line every ten seconds in a run's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol


class Stage(Protocol):
    """One running stage."""

    def advance(self, count: int = 1) -> None:
        """Say that `count` more units are done."""
        ...


class Reporter(Protocol):
    """Where stages report to."""

    def stage(self, name: str, total: int, unit: str) -> Stage:
        """Open a stage of `total` units (`unit` is a plural noun, such as "answers")."""
        ...

    def close(self, stage: Stage) -> None:
        """The stage ended, finished or not."""
        ...

    def warn(self, line: str) -> None:
        """Something went wrong that does not stop the stage, and that people should know."""
        ...


class LogStage:
    """Writes a line at most every `interval` seconds while a stage runs; thread-safe enough for counters."""

    def __init__(self, write: Callable[[str], None], name: str, total: int, unit: str, interval: float) -> None:
        self.name = name
        self._write = write
        self._total = total
        self._unit = unit
        self._interval = interval
        self._done = 0
        self._started = time.monotonic()
        self._spoke = self._started

    def advance(self, count: int = 1) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._spoke >= self._interval:
            self._spoke = now
            rate = self._done / max(now - self._started, 1e-9)
            left = max(self._total - self._done, 0) / max(rate, 1e-9)
            self._write(f"{self.name}: {self._done} of {self._total} {self._unit}, about {left:.0f} s left")


class LogReporter:
    """Reports through a `write(line)` callable, such as a Dagster logger's `info`."""

    def __init__(self, write: Callable[[str], None], interval: float = 10.0) -> None:
        self._write = write
        self._interval = interval

    def stage(self, name: str, total: int, unit: str) -> LogStage:
        return LogStage(self._write, name, total, unit, self._interval)

    def close(self, stage: Stage) -> None:
        del stage

    def warn(self, line: str) -> None:
        self._write(f"warning: {line}")


class _SilentStage:
    def advance(self, count: int = 1) -> None:
        del count


class SilentReporter:
    """Reports to nobody: the default of the Python API."""

    def stage(self, name: str, total: int, unit: str) -> Stage:
        del name, total, unit
        return _SilentStage()

    def close(self, stage: Stage) -> None:
        del stage

    def warn(self, line: str) -> None:
        del line


SILENT = SilentReporter()


@contextmanager
def stage(reporter: Reporter, name: str, total: int, unit: str) -> Generator[Stage]:
    """Open a stage for the time of a `with` block."""
    opened = reporter.stage(name, total, unit)
    try:
        yield opened
    finally:
        reporter.close(opened)
