"""A recordable call before it is made, what came of it, and why it could not be replayed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_eval_assets.recording.request import request_key

MISSING = "recording_missing"
DAMAGED = "recording_damaged"


class RecordingFault(Exception):
    """A call cannot be replayed. It costs one row.

    Attributes:
        kind: `recording_missing` or `recording_damaged`.
        key: key of the call.
    """

    kind = ""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


class MissingRecording(RecordingFault):
    """Replay was asked for, and the call was never recorded."""

    kind = MISSING


class DamagedRecording(RecordingFault):
    """The call was recorded, but its recording is damaged or contradicts another one."""

    kind = DAMAGED


@dataclass(frozen=True)
class Call:
    """One call before it is made.

    Attributes:
        identity: what is called (`recording.request`).
        text: what is sent.
        trial: 0-based.
        role: what the call is for, in messages: "target", "reference of example 'q-1'".
    """

    identity: Mapping[str, Any]
    text: str
    trial: int = 0
    role: str = "target"

    @property
    def key(self) -> str:
        """`request.request_key` of the call."""
        return request_key(self.identity, self.text, self.trial)


@dataclass(frozen=True)
class Recorded:
    """What a call returned, now or when it was recorded.

    Attributes:
        output: what was returned, as JSON.
        origin: `live` or `replayed`.
        key: key of the call.
        recorded: whether it was written to the cassette just now.
        latency_ms: milliseconds of the real call; of its batch, where it was one of several.
        answered_at: when the real call was answered, UTC.
    """

    output: dict[str, Any]
    origin: str
    key: str
    recorded: bool
    latency_ms: float | None
    answered_at: dt.datetime


NOTES = "notes"
"""Field of an output that holds what may differ between equal answers, such as tokens; no part of what is compared."""

Batch = Callable[[Sequence[int]], Awaitable[Sequence[dict[str, Any] | Exception]]]
"""Makes the calls at these places, in one request where it can; a call that fails gives its exception."""
