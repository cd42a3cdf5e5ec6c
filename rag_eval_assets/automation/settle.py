"""When a changed corpus counts as changed: once it has stayed as it is, and never on the first look."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag_eval_assets.automation.fingerprint import shorten


@dataclass(frozen=True)
class Seen:
    """What is known of a corpus between two looks.

    Attributes:
        fingerprint: the version that the newest run was about, or that the first look found.
        generation: how many changes have been accepted.
        candidate: another version that was seen last and has not settled yet.
        since: when the candidate was first seen, in seconds since 1970.
    """

    fingerprint: str
    generation: int = 0
    candidate: str | None = None
    since: float | None = None

    def to_cursor(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_cursor(cls, cursor: str | None) -> Seen | None:
        """Read `to_cursor`'s line; None where there is none or something else was put there."""
        try:
            content: Any = json.loads(cursor or "null")
            return cls(
                fingerprint=str(content["fingerprint"]),
                generation=int(content["generation"]),
                candidate=None if content["candidate"] is None else str(content["candidate"]),
                since=None if content["since"] is None else float(content["since"]),
            )
        except (ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True)
class Decision:
    """What one look leads to: what is known now, whether a run is due, and why in one sentence."""

    seen: Seen
    due: bool
    why: str


def look(before: Seen | None, fingerprint: str, *, now: float, settle_seconds: float, generation: int = 0) -> Decision:
    """Compare a corpus with what was known of it.

    A change is accepted once the same other version has been seen for `settle_seconds`; every accepted change raises
    the generation, so that a corpus that goes back to an earlier version is a change like any other.

    Args:
        before: what was known; None on the first look.
        fingerprint: of the corpus as it is.
        now: seconds since 1970.
        settle_seconds: how long a change must stay as it is.
        generation: the last one that is known from elsewhere, for a first look after the memory was lost.
    """
    if before is None:
        seen = Seen(fingerprint, generation)
        return Decision(seen, False, f"first look: the corpus is at {shorten(fingerprint)}; nothing to compare with")
    if fingerprint == before.fingerprint:
        why = f"unchanged at {shorten(fingerprint)}"
        if before.candidate is not None:
            why = f"back at {shorten(fingerprint)} before the change had settled"
        return Decision(Seen(fingerprint, before.generation), False, why)
    change = f"changed from {shorten(before.fingerprint)} to {shorten(fingerprint)}"
    if before.candidate != fingerprint or before.since is None or now < before.since:
        if settle_seconds > 0:
            seen = replace(before, candidate=fingerprint, since=now)
            return Decision(seen, False, f"{change}; a run follows if it stays so for {settle_seconds:g} s")
    elif now - before.since < settle_seconds:
        stays = now - before.since
        return Decision(before, False, f"{change} {stays:.0f} s ago; a run follows after {settle_seconds:g} s")
    accepted = Seen(fingerprint, before.generation + 1)
    return Decision(accepted, True, f"{change} and stayed so; generation {accepted.generation}")


def run_key(suite_slug: str, run_date: dt.date, generation: int) -> str:
    """Key that Dagster remembers for ever: one run per accepted change, also where a tick is repeated."""
    return f"{suite_slug}-{run_date.isoformat()}-{generation}"
