"""Replacing a file so that it is the old one or the new one at every moment, also after a kill or a power cut."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rag_eval_assets.errors import InfrastructureError


def replace_file(final: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `final`, then rename it over `final`.

    Temporary names begin with a dot and end in `.tmp`, so that no `*.parquet` or `*.json` glob sees them; what a killed
    process left behind is removed the next time the same file is written.

    Raises:
        InfrastructureError: the folder or file cannot be written.
    """
    temporary = final.with_name(f".{final.name}.{os.getpid()}.{uuid.uuid4().hex}.tmp")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(final)
        write(temporary)
        sync(temporary)
        temporary.replace(final)
        sync(final.parent)
    except OSError as error:
        raise InfrastructureError(f"cannot write {final.name!r} ({error.strerror or error})") from error
    finally:
        with suppress(OSError):  # where the folder itself is unusable, that error must not replace the first one
            temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def process_is_gone(pid: int) -> bool:
    """Whether no process of this machine has the id `pid`."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _remove_leftovers(final: Path) -> None:
    for path in final.parent.glob(f".{final.name}.*.tmp"):
        owner = path.name.removeprefix(f".{final.name}.").split(".", 1)[0]
        if owner.isdigit() and process_is_gone(int(owner)):
            path.unlink(missing_ok=True)
