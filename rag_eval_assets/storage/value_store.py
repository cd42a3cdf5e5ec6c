"""A bounded store of computed values: a SQLite file that several processes may use, with a checksum in every entry.

It never stops a run: what cannot be read is computed again, what cannot be written is left out, and `Events` says so.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeVar

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.sqlite_file import (
    BUSY_SECONDS,
    TAKEN,
    UNUSABLE,
    count,
    delete_all,
    give_back,
    open_file,
    pragma,
    transaction,
    used_bytes,
)

Result = TypeVar("Result")

HELD_SECONDS = 3 * 3600
"""What was used within this time is not pushed out. Without it, a run over more than the store holds would push out
each entry just before it is wanted again, and the next run would find nothing; so it finds a store full."""

_KEYS_AT_ONCE = 500
_DIGEST_BYTES = 16


@dataclass
class Events:
    """What happened to a store, for the run's report.

    Attributes:
        hits, misses: keys asked for that were and were not there.
        damaged: entries that were there and unreadable.
        not_kept: entries that were computed and could not be kept.
        notes: what went wrong or was left out, each said once.
    """

    hits: int = 0
    misses: int = 0
    damaged: int = 0
    not_kept: int = 0
    notes: list[str] = field(default_factory=list[str])

    def note(self, text: str) -> None:
        """Say `text`, unless it was said."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass(frozen=True)
class StoreStats:
    """What a store holds now: entries, bytes on disk, its limit, and bytes of a damaged file that was set aside."""

    entries: int
    bytes: int
    limit: int
    set_aside: int


class ValueStore:
    """Values by key, both bytes, least recently used first to go. Safe for threads and for several processes.

    Args:
        file: the SQLite file; made when something is stored.
        limit: most bytes on disk; what is being written and SQLite's log (a few MB) come on top.
        clock: nanoseconds since the epoch.
    """

    def __init__(self, file: Path, limit: int, clock: Callable[[], int] = time.time_ns) -> None:
        self.file = file
        self.limit = limit
        self._clock = clock
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened_by = self._inode = 0
        self._off = limit <= 0
        self._events = Events()

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there undamaged."""
        wanted = list(dict.fromkeys(keys))
        with self._lock:
            found = self._attempt(lambda connection: self._get(connection, wanted), {}) if self._exists() else {}
            self._events.hits += len(found)
            self._events.misses += len(wanted) - len(found)
            return found

    def put_many(self, entries: Mapping[bytes, bytes]) -> None:
        """Keep `entries`, all or, where something is in the way or they are too many, some or none of them."""
        if not entries:
            return
        with self._lock:
            kept = self._attempt(lambda connection: self._put(connection, entries), 0)
            if self.limit > 0:
                self._events.not_kept += len(entries) - kept

    def report_damage(self) -> None:
        """Count an entry that was got and turned out to be unreadable."""
        with self._lock:
            self._events.damaged += 1

    def take_events(self) -> Events:
        """What happened since this was last asked."""
        with self._lock:
            taken, self._events = self._events, Events()
            return taken

    def stats(self) -> StoreStats:
        """What the store holds now."""
        with self._lock:
            entries, used = self._attempt(count, (0, 0)) if self._exists() else (0, 0)
            aside = self._damaged()
            return StoreStats(entries, used, self.limit, aside.stat().st_size if aside.exists() else 0)

    def clear(self) -> None:
        """Remove all entries; processes that use the store go on using it.

        Raises:
            InfrastructureError: the file can be neither emptied nor removed.
        """
        with self._lock:
            # Also a store that is off, by its limit or after an error, can be cleared.
            self._off = False
            done = not self._exists() or self._attempt(delete_all, False)
            self._damaged().unlink(missing_ok=True)
            # A file that was damaged was set aside, and is gone with it.
            if not done and self.file.exists():
                notes = "; ".join(self._events.notes)
                raise InfrastructureError(f"{self.file.name!r} cannot be cleared ({notes})", fix="Delete the file")
            self._off = self.limit <= 0

    def close(self) -> None:
        """Close the file; the store opens it again when it is used."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._opened_by == os.getpid():
                with suppress(sqlite3.Error):
                    connection.close()

    def _get(self, connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        stale: list[bytes] = []
        # Without writing at every look: a use is noted where the last noted one is some time ago.
        noted_since = self._clock() - HELD_SECONDS * 1_000_000_000 // 4
        for block in _blocks(keys):
            marks = ",".join("?" * len(block))
            rows = connection.execute(f"SELECT key, used, digest, value FROM entries WHERE key IN ({marks})", block)
            for key, used, digest, value in rows:
                if not _is_intact(key, used, digest, value):
                    self._events.damaged += 1
                    continue
                found[key] = value
                if used < noted_since:
                    stale.append(key)
        if stale:
            self._touch(connection, stale)
        return found

    def _touch(self, connection: sqlite3.Connection, keys: list[bytes]) -> None:
        now = self._clock()
        # Only the order of eviction hangs on it.
        with suppress(sqlite3.OperationalError), transaction(connection):
            connection.executemany("UPDATE entries SET used = ? WHERE key = ?", ((now, key) for key in keys))

    def _put(self, connection: sqlite3.Connection, entries: Mapping[bytes, bytes]) -> int:
        now = self._clock()
        with transaction(connection):
            room = self._make_room(connection, sum(map(_bytes_on_disk, entries.values())), now)
            rows: list[tuple[bytes, int, int, bytes, bytes]] = []
            for key, value in entries.items():
                room -= _bytes_on_disk(value)
                if room < 0:
                    self._events.note(
                        f"{self.file.name} is full of what was used of late; raise RAG_EVAL_CACHE_MB to keep more"
                    )
                    break
                rows.append((key, now, len(value), _digest(key, value), value))
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        if pragma(connection, "page_count") * pragma(connection, "page_size") > self.limit:
            give_back(connection)
        return len(rows)

    def _make_room(self, connection: sqlite3.Connection, needed: int, now: int) -> int:
        """Bytes that are free, after the longest unused entries were removed where fewer than `needed` were."""
        room = self.limit - used_bytes(connection)
        if room >= needed:
            return room
        # More than is needed, so that not every call has to look for the oldest.
        missing, last = needed - room + self.limit // 16, -1
        held_since = now - HELD_SECONDS * 1_000_000_000
        oldest = connection.execute(
            "SELECT used, SUM(size), COUNT(*) FROM entries WHERE used < ? GROUP BY used ORDER BY used", (held_since,)
        )
        for used, size, entries in oldest:
            missing -= size + entries * _bytes_on_disk(b"")
            last = used
            if missing <= 0:
                break
        connection.execute("DELETE FROM entries WHERE used <= ?", (last,))
        return self.limit - used_bytes(connection)

    def _attempt(self, work: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
        """The result of `work`, or `otherwise` where the file or its disk does not let it."""
        if self._off:
            return otherwise
        try:
            return work(self._connect())
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self._give_way(error)
            return otherwise

    def _give_way(self, error: sqlite3.Error | OSError | UnicodeDecodeError) -> None:
        # What is no Unicode is a message that quotes a damaged file.
        garbled = isinstance(error, UnicodeDecodeError)
        code = sqlite3.SQLITE_CORRUPT if garbled else getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
        if code in TAKEN:
            self._events.note(f"{self.file.name} was in use by other processes; some entries were passed over")
        elif code in UNUSABLE:
            self._set_aside()
        else:
            self._switch_off(error)

    def _switch_off(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or error
        self._off = True
        self.close()
        self._events.note(f"{self.file.name} cannot be used ({reason}); the run goes on without it")

    def _set_aside(self) -> None:
        from filelock import FileLock  # imported by no run that finds its file in order

        damaged, inode = self._damaged(), self._inode
        self.close()
        try:
            with FileLock(damaged.with_suffix(".lock"), timeout=BUSY_SECONDS):
                # Another process may have done it meanwhile.
                if self.file.exists() and (inode == 0 or self.file.stat().st_ino == inode):
                    self.file.replace(damaged)
                    for log in ("-wal", "-shm"):  # a new file must not meet the old one's log
                        self.file.with_name(self.file.name + log).unlink(missing_ok=True)
            damaged.with_suffix(".lock").unlink(missing_ok=True)
        except OSError as failure:
            self._switch_off(failure)
            return
        self._events.note(f"{self.file.name} was damaged or of another layout; it is set aside as {damaged.name}")

    def _damaged(self) -> Path:
        return self.file.with_name(f"{self.file.name}.damaged")

    def _exists(self) -> bool:
        return self._connection is not None or self.file.exists()

    def _connect(self) -> sqlite3.Connection:
        # A connection must not be used, nor closed, by a child of the process that opened it.
        if self._connection is None or self._opened_by != os.getpid():
            self._inode = 0
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._opened_by = os.getpid()
            self._connection = open_file(self.file)
            self._inode = self.file.stat().st_ino
        return self._connection


def _blocks(keys: list[bytes]) -> Iterator[list[bytes]]:
    rest = iter(keys)
    while block := list(islice(rest, _KEYS_AT_ONCE)):
        yield block


def _is_intact(key: object, used: object, digest: object, value: object) -> bool:
    # Damage may also change a column's type.
    if not (isinstance(key, bytes) and isinstance(used, int) and isinstance(value, bytes)):
        return False
    return _digest(key, value) == digest


def _digest(key: bytes, value: bytes) -> bytes:
    digest = blake2b(key, digest_size=_DIGEST_BYTES)
    digest.update(value)
    return digest.digest()


def _bytes_on_disk(value: bytes) -> int:
    """About: key in table and index, digest, numbers, and half a page where the value has pages of its own."""
    return len(value) + 160 + (2048 if len(value) > 4096 else 0)
