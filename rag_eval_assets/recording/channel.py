"""The way every recordable call goes: replayed, made and recorded, or just made, as the channel's mode says."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_eval_assets.errors import EvalError, RecordingMissingError
from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.cassette.store import (
    Cassette,
    UnusableRecording,
    close_cassette,
    open_cassette,
)
from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.recording.recorded import (
    NOTES,
    Batch,
    Call,
    DamagedRecording,
    MissingRecording,
    Recorded,
    RecordingFault,
)
from rag_eval_assets.recording.request import canonical_request

_logger = logging.getLogger(__name__)


class Channel:
    """A kind of calls (to the target, or for embeddings) with its mode and the cassette of its suite.

    Attributes:
        name: `target` or `embeddings`.
        mode: what a call does with the cassette.
        counts: calls so far: `live`, `replayed`, `recorded`, `missing`.
    """

    def __init__(self, name: str, mode: Mode, cassette: Cassette | None, *, folder: Path, record_with: str) -> None:
        self.name = name
        self.mode = mode
        self.counts: Counter[str] = Counter()
        self._cassette = cassette
        self._folder = folder
        self._record_with = record_with
        self._fresh: dict[str, Recorded] = {}
        self._warned = False

    def require(self) -> None:
        """Raise RecordingMissingError in replay where there is no cassette at all; call it before the first call."""
        if self.mode is Mode.REPLAY and not self._folder.is_dir():
            raise RecordingMissingError(
                f"there is no cassette at {self._folder}", fix=f"Record one: {self._record_with}"
            )

    async def call(
        self,
        identity: Mapping[str, Any],
        text: str,
        trial: int,
        live: Callable[[], Awaitable[dict[str, Any]]],
        *,
        role: str = "target",
    ) -> Recorded:
        """Make or replay one call. In `live` and `off` every call is made; in `auto` one of equal calls is.

        Raises:
            MissingRecording, DamagedRecording: it cannot be replayed.
            Exception: whatever `live` raises; errors are never recorded.
        """
        call = Call(identity, text, trial, role)

        async def batch(places: Sequence[int]) -> list[dict[str, Any] | Exception]:
            return [await live() for _ in places]

        if self.mode is Mode.REPLAY or (self.mode is Mode.AUTO and self._cassette is not None):
            found = await self._through_cassette({call.key: call}, lambda _: batch([0]))
            outcome = found[call.key]
        else:
            (outcome,) = await self._make({0: call}, batch)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def call_many(
        self, calls: Sequence[Call], live: Batch, *, batch_size: int = 1, concurrency: int = 4
    ) -> list[Recorded | Exception]:
        """Make or replay many calls, an outcome for each, in order. Except in `off`, equal calls are made once.

        Args:
            calls: the calls.
            live: is given at most `batch_size` places of `calls` at a time.
            batch_size: calls in one request.
            concurrency: requests at the same time.
        """
        slots = asyncio.Semaphore(concurrency)
        if self.mode is Mode.OFF:
            groups = _groups(list(enumerate(calls)), batch_size)
            made = await _gather(
                [self._in_slot(slots, lambda group=group: self._make(dict(group), live)) for group in groups]
            )
            return [outcome for outcomes in made for outcome in outcomes]
        keys = [call.key for call in calls]
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        outcomes: dict[str, Recorded | Exception] = {}
        for key in first:
            known = self._known(key, calls[first[key]])
            if known is not None:
                outcomes[key] = known
        open_keys = [(key, place) for key, place in first.items() if key not in outcomes]

        async def group_made(group: Sequence[tuple[str, int]]) -> dict[str, Recorded | Exception]:
            places = dict(group)
            wanted = {key: calls[place] for key, place in group}
            return await self._through_cassette(wanted, lambda keys: live([places[key] for key in keys]))

        groups = _groups(sorted(open_keys, key=lambda pair: pair[1]), batch_size)
        for made in await _gather([self._in_slot(slots, lambda group=group: group_made(group)) for group in groups]):
            outcomes.update(made)
        self._fresh.update({k: o for k, o in outcomes.items() if isinstance(o, Recorded) and o.origin == "live"})
        return [outcomes[key] for key in keys]

    @staticmethod
    async def _in_slot(slots: asyncio.Semaphore, work: Callable[[], Awaitable[Any]]) -> Any:
        async with slots:
            return await work()

    def _known(self, key: str, call: Call) -> Recorded | Exception | None:
        """What needs no call: a recording, in replay also its absence; in `live` what this channel has just got."""
        if self.mode is Mode.LIVE:
            return self._fresh.get(key)
        try:
            found = self._replayed(key)
        except RecordingFault as fault:
            return fault
        return found or (self._missing(key, call) if self.mode is Mode.REPLAY else None)

    def _replayed(self, key: str) -> Recorded | None:
        try:
            entry = self._cassette.get(key) if self._cassette else None
        except UnusableRecording as error:
            raise DamagedRecording(f"{error}. {error.fix}: {self._record_with}", key) from error
        if entry is None:
            return None
        self.counts["replayed"] += 1
        notes = {NOTES: entry.meta[NOTES]} if NOTES in entry.meta else {}
        return Recorded(
            {**entry.response, **notes},
            "replayed",
            key,
            False,
            entry.meta.get("latency_ms"),
            _moment(entry.recorded_at),
        )

    def _missing(self, key: str, call: Call) -> MissingRecording:
        self.counts["missing"] += 1
        damaged = self._cassette.damages() if self._cassette else []
        hint = f" ({len(damaged)} damaged lines, the first: {damaged[0].place})" if damaged else ""
        return MissingRecording(
            f"the {call.role} has no recording (key {key}){hint}. Record it: {self._record_with}", key
        )

    async def _through_cassette(
        self,
        wanted: Mapping[str, Call],
        live: Callable[[Sequence[str]], Awaitable[Sequence[dict[str, Any] | Exception]]],
    ) -> dict[str, Recorded | Exception]:
        """Each key's outcome: known, made here, or made by whoever is at it already."""
        outcomes: dict[str, Recorded | Exception] = {}
        while left := {key: call for key, call in wanted.items() if key not in outcomes}:
            known = {key: self._known(key, call) for key, call in left.items()}
            outcomes.update({key: outcome for key, outcome in known.items() if outcome is not None})
            left = {key: call for key, call in left.items() if key not in outcomes}
            mine, others = self._claim(list(left))
            if mine:
                try:
                    outcomes.update(await self._make_claimed({key: left[key] for key in mine}, live))
                finally:
                    self._unclaim(mine)
            for future in others:
                # Its outcome is looked up again; a call that failed for the other one is made here once more.
                await asyncio.shield(asyncio.wrap_future(future))
        return outcomes

    def _claim(self, keys: list[str]) -> tuple[list[str], list[Future[None]]]:
        if self._cassette is None or self.mode is not Mode.AUTO:
            return keys, []
        with self._cassette.lock:
            flights = self._cassette.flights
            mine = [key for key in keys if key not in flights]
            others = [flights[key] for key in keys if key in flights]
            flights.update({key: Future[None]() for key in mine})
        return mine, others

    def _unclaim(self, keys: list[str]) -> None:
        if self._cassette is None or self.mode is not Mode.AUTO:
            return
        self._cassette.keys.release(keys)
        with self._cassette.lock:
            futures = [self._cassette.flights.pop(key) for key in keys]
        for future in futures:
            future.set_result(None)

    async def _make_claimed(
        self,
        calls: Mapping[str, Call],
        live: Callable[[Sequence[str]], Awaitable[Sequence[dict[str, Any] | Exception]]],
    ) -> dict[str, Recorded | Exception]:
        found: dict[str, Recorded | Exception] = {}
        if self._cassette is not None and self.mode is Mode.AUTO:
            await self._cassette.keys.acquire(list(calls))
            self._cassette.refresh()
            known = {key: self._known(key, call) for key, call in calls.items()}
            found = {key: outcome for key, outcome in known.items() if outcome is not None}
        keys = [key for key in calls if key not in found]
        if keys:
            made = await self._make(
                {place: calls[key] for place, key in enumerate(keys)}, lambda places: live([keys[p] for p in places])
            )
            found.update(zip(keys, made, strict=True))
        return found

    async def _make(self, calls: Mapping[int, Call], live: Batch) -> list[Recorded | Exception]:
        """Make calls, recording what came of them where the mode says so."""
        started = time.perf_counter()
        answers = await live(list(calls))
        latency_ms, now = (time.perf_counter() - started) * 1000, dt.datetime.now(dt.UTC)
        made: list[Recorded | Exception] = []
        for call, answer in zip(calls.values(), answers, strict=True):
            self.counts["live"] += 1
            if isinstance(answer, Exception):
                made.append(answer)
                continue
            recorded = self._record(call, answer, latency_ms, now)
            made.append(Recorded(answer, "live", call.key, recorded, latency_ms, now))
        return made

    def _record(self, call: Call, answer: dict[str, Any], latency_ms: float, now: dt.datetime) -> bool:
        """Whether the answer is in the cassette now. Where it cannot be, it is kept all the same: it is paid for."""
        if self._cassette is None or self.mode not in (Mode.AUTO, Mode.LIVE):
            return False
        notes = {NOTES: answer[NOTES]} if NOTES in answer else {}
        response = {name: value for name, value in answer.items() if name != NOTES}
        meta = {"recorded_at": now.isoformat(), "latency_ms": round(latency_ms, 3), **notes}
        request = canonical_request(call.identity, call.text, call.trial)
        try:
            self._cassette.put(Entry(call.key, request, response, meta))
        except (OSError, ValueError, EvalError) as error:
            if not self._warned:
                self._warned = True
                _logger.warning("calls of %s are not recorded in %s (%s)", self.name, self._folder.name, error)
            return False
        self.counts["recorded"] += 1
        return True


@contextmanager
def open_channel(name: str, mode: Mode, folder: Path, *, record_with: str) -> Generator[Channel]:
    """A channel for the time of a `with` block; at its end, what was recorded is taken into the cassette's shards.

    Args:
        name: `target` or `embeddings`.
        mode: what calls do with the cassette.
        folder: the cassette; it need not be there.
        record_with: what to run to record what is missing.
    """
    if mode is Mode.OFF:
        yield Channel(name, mode, None, folder=folder, record_with=record_with)
        return
    cassette = open_cassette(folder)
    if mode is not Mode.REPLAY:
        cassette.records()
    try:
        yield Channel(name, mode, cassette, folder=folder, record_with=record_with)
    finally:
        try:
            close_cassette(cassette)
        except (OSError, EvalError) as error:
            _logger.warning("what was recorded is not sorted into %s yet (%s)", folder.name, error)


def _groups(items: Sequence[Any], size: int) -> list[list[Any]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


async def _gather(work: Sequence[Awaitable[Any]]) -> list[Any]:
    """All results in order; the first error stops the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _moment(text: str) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return dt.datetime.fromtimestamp(0, dt.UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
