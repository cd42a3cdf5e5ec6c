"""How a channel of calls treats its recordings: record and replay, replay only, always call, or neither."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum

from rag_eval_assets.errors import ConfigurationError


class Mode(StrEnum):
    """What a call does with the cassette."""

    AUTO = "auto"
    """A recorded call is replayed, any other is made and recorded."""
    REPLAY = "replay"
    """Recorded calls only; nothing connects, nothing is written."""
    LIVE = "live"
    """Every call is made, and its recording replaced."""
    OFF = "off"
    """Every call is made; the cassette is neither read nor written."""


@dataclass(frozen=True)
class Modes:
    """The mode of each channel: calls to the target, and calls for embeddings."""

    target: Mode
    embeddings: Mode

    @property
    def offline(self) -> bool:
        """Whether nothing may be called, so that models are not downloaded either."""
        return self.target is Mode.REPLAY and self.embeddings is Mode.REPLAY


FROM_THE_COMMAND_LINE = Modes(target=Mode.AUTO, embeddings=Mode.AUTO)
"""A run that a person starts repeats what was recorded, where the suite says nothing else."""

ON_A_SCHEDULE = Modes(target=Mode.LIVE, embeddings=Mode.AUTO)
"""A run date must measure the system of that date: with recorded answers, the second day would repeat the first."""


def read_mode(given: str | None, field: str) -> Mode | None:
    """The mode that `given` names; None where nothing is given.

    Raises:
        ConfigurationError: there is no such mode; the message names `field`.
    """
    if given is None:
        return None
    try:
        return Mode(given)
    except ValueError:
        near = difflib.get_close_matches(given, list(Mode), n=1)
        hint = f"Did you mean {str(near[0])!r}? " if near else ""
        raise ConfigurationError(f"{field} is {given!r}", fix=f"{hint}Modes: {', '.join(Mode)}") from None


def choose_modes(
    defaults: Modes,
    *,
    suite: tuple[Mode | None, Mode | None] = (None, None),
    both: Mode | None = None,
    target: Mode | None = None,
    embeddings: Mode | None = None,
) -> Modes:
    """The modes of one run: the run's own word for a channel, then for both, then the suite's, then the default."""
    return Modes(
        target=target or both or suite[0] or defaults.target,
        embeddings=embeddings or both or suite[1] or defaults.embeddings,
    )
