"""The segment: where one process writes what it records, until the cassette's shards take it in."""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

from rag_eval_assets.recording.cassette.folder import SEGMENTS

SYNC_SECONDS = 0.5
"""Records reach the operating system at once and survive a kill; the disk is flushed this often (group commit)."""

FOLDER_FILES = {".gitattributes": "*.jsonl merge=union text eol=lf\n", ".gitignore": f"/{SEGMENTS}/\n/.*.lock\n"}
"""What a cassette tells git: lines of two branches are kept side by side; what only this machine needs stays out."""


class Segment:
    """An append-only file that is locked for as long as its process lives, so that nobody takes it in before.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in FOLDER_FILES.items():
            if not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
        self.path = folder / SEGMENTS / f"{uuid.uuid4().hex}.jsonl"
        fresh = self.path.with_suffix(".new")
        try:
            self._descriptor = _create(fresh)
        except FileNotFoundError:  # another process has just tidied the empty folder away
            self._descriptor = _create(fresh)
        # Locked before it has the name under which others look for segments.
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        fresh.rename(self.path)
        self._synced = time.monotonic()

    def append(self, line: bytes) -> None:
        """Write a line whole or not at all; it survives a kill of this process from the moment this returns."""
        start = os.fstat(self._descriptor).st_size
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, start)
            raise
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def close(self) -> None:
        """Flush and unlock: from here on any process may take it in."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


def _create(path: Path) -> int:
    path.parent.mkdir(exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)


def take_over(path: Path) -> int | None:
    """Lock a segment whose process is gone; its descriptor, or None where it is alive or the segment is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
