"""Every error that the project raises on purpose, with the exit code that it stands for.

A message says what was wrong and where; `fix` says what to do about it. Errors about single rows are data, not
exceptions: they live in the tables as a status.
"""

from __future__ import annotations

import re
from typing import ClassVar

_DETAIL_CHARACTERS = 300
_PATHS = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][\w.~+@-]+){2,}[/\\]?")


class EvalError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line returns for it."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}. {self.fix}" if self.fix else self.message


class QualityError(EvalError):
    """A gate or threshold that the suite set was not met (exit code 1)."""

    exit_code = 1


class ConfigurationError(EvalError):
    """The suite, a file or a model that it names is unusable; nothing was spent or written (exit code 2)."""

    exit_code = 2


class UnavailableError(ConfigurationError):
    """A pinned model or a hub data set is not on this machine and could not be had; the suite itself is right."""


class InfrastructureError(EvalError):
    """A service, disk or network failed in a way that stops a stage (exit code 3)."""

    exit_code = 3


class RecordingMissingError(EvalError):
    """Replay was asked for and a call has no recording (exit code 4)."""

    exit_code = 4


def describe_error(error: Exception) -> str:
    """Type and first line of an exception, bounded, with file paths left out: it stands in tables and reports."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return _PATHS.sub("<path>", text)[:_DETAIL_CHARACTERS]
