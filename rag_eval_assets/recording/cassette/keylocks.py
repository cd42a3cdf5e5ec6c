"""Locks between processes, one per key: who is about to make a call holds it, so that it is made once.

All keys share one lock file, each as a byte of it, which needs no file per key and is released when a process dies.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_WAIT_SECONDS = (0.01, 0.25)
"""First and longest pause between two looks at a lock that another process holds."""


class KeyLocks:
    """Where the folder cannot be written or its disk knows no locks, no key is locked: a call may be made twice."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".keys.lock"
        self._descriptor = -1
        self._opening = threading.Lock()

    async def acquire(self, keys: Sequence[str]) -> None:
        """Lock all keys, waiting for other processes; in sorted order, so that two never wait for each other."""
        if self._descriptor < 0 and not self._open():
            return
        for key in sorted(keys):
            pause = _WAIT_SECONDS[0]
            while not self._try(key):
                await asyncio.sleep(pause)
                pause = min(2 * pause, _WAIT_SECONDS[1])

    def release(self, keys: Sequence[str]) -> None:
        """Unlock keys, also such as are not locked."""
        if self._descriptor >= 0:
            for key in keys:
                with suppress(OSError):
                    fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _place(key))

    def close(self) -> None:
        """Release all."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Delete the lock file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _open(self) -> bool:
        with self._opening, suppress(OSError):
            if self._descriptor < 0:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o644)
        return self._descriptor >= 0

    def _try(self, key: str) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True
        return True


def _place(key: str) -> int:
    return int(key[:15], 16)
