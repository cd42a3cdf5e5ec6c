"""What a command line run shares with the assets that it executes in its own process: progress, and what failed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from rag_eval_assets.errors import EvalError
from rag_eval_assets.progress import SILENT, Reporter
from rag_eval_assets.report.write import WrittenReport


@dataclass
class Session:
    """One run of the command line.

    Attributes:
        reporter: shows progress.
        failures: what the assets raised, in order.
        reports: what they wrote, in order.
    """

    reporter: Reporter = SILENT
    failures: list[EvalError] = field(default_factory=list[EvalError])
    reports: list[WrittenReport] = field(default_factory=list[WrittenReport])


_ACTIVE: ContextVar[Session | None] = ContextVar("rag_eval_session", default=None)


def active_session() -> Session | None:
    """The session of this process, or None where Dagster runs on its own."""
    return _ACTIVE.get()


@contextmanager
def session(opened: Session) -> Generator[Session]:
    """Make `opened` the active session for the time of a `with` block."""
    token = _ACTIVE.set(opened)
    try:
        yield opened
    finally:
        _ACTIVE.reset(token)
