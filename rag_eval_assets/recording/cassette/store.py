"""The cassette of one process: looks calls up, records them, and takes what was recorded into the shards at the end."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from rag_eval_assets.recording.cassette.compact import compact
from rag_eval_assets.recording.cassette.entry import Damage, Entry, has_whole_response
from rag_eval_assets.recording.cassette.folder import (
    Lines,
    contradicting,
    read_lines,
    read_segment,
    segment_paths,
    shard_paths,
)
from rag_eval_assets.recording.cassette.keylocks import KeyLocks
from rag_eval_assets.recording.cassette.segment import Segment

_OPEN: dict[Path, Cassette] = {}
_OPENING = threading.Lock()


class UnusableRecording(Exception):
    """A call was recorded, but its recording cannot be used: it is damaged, or two recordings contradict each other.

    Attributes:
        place: file and line.
        fix: what to run.
    """

    def __init__(self, message: str, place: str, fix: str) -> None:
        super().__init__(message)
        self.place = place
        self.fix = fix


class Cassette:
    """A folder of recorded calls; safe for threads. `open_cassette` makes one per folder and process.

    Attributes:
        folder: where it lies.
        flights: calls that are being made now, by key, so that nobody makes one twice at a time.
        keys: the same between processes.
        lock: guards `flights`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.flights: dict[str, Future[None]] = {}
        self.keys = KeyLocks(folder)
        self.lock = threading.RLock()
        self.users = 0
        self._shards: dict[str, Lines] = {}
        self._stamps: dict[str, tuple[int, int, int]] = {}
        self._recorded: dict[str, Entry] = {}
        self._segment_ends: dict[str, int] = {}
        self._segment: Segment | None = None
        self._records = False
        self.refresh()

    def get(self, key: str) -> Entry | None:
        """The recording of `key`, or None.

        Raises:
            UnusableRecording: it is damaged, or there are several that say different things.
        """
        with self.lock:
            entry = self._recorded.get(key)
            lines = [(name, line, e) for name, shard in self._shards.items() for line, e in shard.entries.get(key, [])]
        if entry is not None and all(entry.recorded_at >= other.recorded_at for _, _, other in lines):
            return entry
        if contradicting([(line, e) for _, line, e in lines]):
            places = " and ".join(f"{name} line {line}" for name, line, _ in lines)
            raise UnusableRecording(
                f"key {key} is recorded with different answers ({places})",
                places,
                f"Keep the newest with `rag-eval cassette merge {self.folder.name} --prefer newest`",
            )
        whole = [entry for _, _, entry in lines if has_whole_response(entry)]
        if whole:
            return whole[0]
        damage = self._damage(key)
        if lines:
            name, line, _ = lines[0]
            damage = Damage(name, line, key, "its response is not the one that was recorded", b"")
        if damage is None:
            return None
        raise UnusableRecording(
            f"the recording of key {key} is damaged ({damage.place}: {damage.reason})",
            damage.place,
            f"Restore the line, or drop it with `rag-eval cassette verify {self.folder.name} --drop {key[:12]}` "
            "and record the call again",
        )

    def put(self, entry: Entry) -> None:
        """Record a call; what it replaces stands in the shards until the cassette is closed.

        Raises:
            OSError: the folder cannot be written; the cassette is as it was.
            ValueError: the response cannot be written as JSON.
        """
        line = entry.to_line()
        with self.lock:
            if self._segment is None:
                self._segment = Segment(self.folder)
            self._segment.append(line)
            self._recorded[entry.key] = entry

    def refresh(self) -> None:
        """See what other processes have recorded since: their segments first, since these may move into shards."""
        with self.lock:
            for path in segment_paths(self.folder):
                if self._segment is None or path != self._segment.path:
                    self._read_segment(path)
            for path in shard_paths(self.folder):
                self._read_shard(path)

    def damages(self) -> list[Damage]:
        """Every line that is no entry."""
        with self.lock:
            return [damage for shard in self._shards.values() for damage in shard.damages]

    def records(self) -> None:
        """Say that a user of the cassette records: `close` then takes the segments into the shards."""
        self._records = True

    def close(self) -> None:
        """Take what was recorded, also by processes that were killed, into the shards; in replay it does nothing.

        Raises:
            OSError, InfrastructureError: a shard cannot be written; the segment stays, and the next one takes it in.
        """
        with self.lock:
            self.keys.close()
            if self._segment is not None:
                self._segment.close()
                self._segment = None
            if self._records and segment_paths(self.folder):
                compact(self.folder)
            elif self._records and not shard_paths(self.folder):
                self.keys.remove()
                with suppress(OSError):  # nothing was recorded, so there is no cassette
                    self.folder.rmdir()

    def _damage(self, key: str) -> Damage | None:
        return next((damage for damage in self.damages() if damage.key == key), None)

    def _read_segment(self, path: Path) -> None:
        entries, end = read_segment(path, self._segment_ends.get(path.name, 0))
        self._segment_ends[path.name] = end
        for entry in entries:
            known = self._recorded.get(entry.key)
            if known is None or entry.recorded_at >= known.recorded_at:
                self._recorded[entry.key] = entry

    def _read_shard(self, path: Path) -> None:
        try:
            stat = path.stat()
        except FileNotFoundError:
            return
        stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if self._stamps.get(path.name) != stamp:
            self._shards[path.name] = read_lines(path)
            self._stamps[path.name] = stamp


def open_cassette(folder: Path) -> Cassette:
    """The cassette of `folder`, shared by all of this process that use it now; each calls `close_cassette`.

    Raises:
        InfrastructureError: a file of it cannot be read.
    """
    with _OPENING:
        if folder not in _OPEN:
            _OPEN[folder] = Cassette(folder)
        _OPEN[folder].users += 1
        return _OPEN[folder]


def close_cassette(cassette: Cassette) -> None:
    """Give the cassette back; the last user closes it."""
    with _OPENING:
        cassette.users -= 1
        if cassette.users == 0:
            _OPEN.pop(cassette.folder, None)
            cassette.close()
