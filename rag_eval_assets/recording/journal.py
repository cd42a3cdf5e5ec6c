"""The journal: every paid answer of a partition that is not committed yet, so that nobody pays for it twice.

A journal is a file of JSON lines, appended as answers arrive. Its last line may be torn by a kill and is then ignored.
`bucket_journal` is one that other machines find as well.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from filelock import FileLock, Timeout

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.errors import InfrastructureError

SYNC_SECONDS = 0.5
"""Records reach the operating system at once and survive a kill; the disk is flushed this often (group commit)."""


class Answered(Protocol):
    """What a stage that asks questions sees of a journal."""

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of `key` (`Journal.key`), or None."""
        ...

    def append(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record; it survives a kill of this process from the moment this returns."""
        ...

    def close_committed(self) -> None:
        """The partition is committed: nothing of the journal is needed any more."""
        ...


class Journal:
    """The answers of one suite, target and run date; used by one process at a time.

    Use it as a context manager; `close_committed` deletes it once the partition is committed.

    Raises:
        InfrastructureError: another process holds the journal, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path.with_suffix(".lock"))
        self._records: dict[str, dict[str, Any]] = {}
        self._descriptor = -1
        self._synced = time.monotonic()

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            end = self._read()
            self._descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600)
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)
        except Timeout as error:
            raise InfrastructureError(
                f"another run is asking the same target the same questions for this date ({self.path.stem})",
                fix="Wait for it to end, or stop it and run again: no answer that it got is lost",
            ) from error
        except OSError as error:
            self._lock.release()
            raise InfrastructureError(f"journal {self.path.name!r} cannot be opened ({error})") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        self._lock.release()

    def __len__(self) -> int:
        return len(self._records)

    @staticmethod
    def key(identity: dict[str, Any], example_id: str, question: str, trial: int) -> str:
        """Key of one call: what is asked, of what, for which row. A changed target or question finds nothing old."""
        return content_hash({"target": identity, "example": example_id, "question": question, "trial": trial})

    @property
    def records(self) -> Mapping[str, dict[str, Any]]:
        """Every record by its key."""
        return self._records

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of `key`, or None."""
        return self._records.get(key)

    def append(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record; it survives a kill of this process from the moment this returns."""
        try:
            self._write_whole(line_of(key, record))
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                os.fsync(self._descriptor)
                self._synced = time.monotonic()
        except OSError as error:
            raise InfrastructureError(f"journal {self.path.name!r} cannot be written ({error})") from error
        self._records[key] = record

    def _write_whole(self, line: bytes) -> None:
        """Write all of `line` or nothing of it: on a full disk, half a line would spoil the next one too."""
        start = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, start)
            os.lseek(self._descriptor, start, os.SEEK_SET)
            raise

    def clear(self) -> None:
        """Forget every record, and go on with an empty file."""
        self._records.clear()
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)

    def close_committed(self) -> None:
        """The partition is committed: nothing of the journal is needed any more."""
        self._records.clear()
        self.path.unlink(missing_ok=True)

    def _read(self) -> int:
        """Load the whole lines; returns the length of the file up to the last of them."""
        if not self.path.exists():
            return 0
        end = 0
        *whole, _torn = self.path.read_bytes().split(b"\n")
        for line in whole:
            end += len(line) + 1
            entry = entry_of(line)
            if entry is not None:  # one damaged line costs one call, not all that come after it
                self._records[entry[0]] = entry[1]
        return end


def line_of(key: str, record: dict[str, Any]) -> bytes:
    """A record as a line of a journal."""
    # ASCII with escapes, since a model's answer may hold a lone surrogate, which UTF-8 cannot; NaN is valid here.
    return json.dumps({"key": key, "record": record}).encode("ascii") + b"\n"


def entry_of(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Key and record of a line; None where it is damaged."""
    try:
        entry = json.loads(line)
        return str(entry["key"]), dict(entry["record"])
    except (ValueError, KeyError, TypeError):
        return None
