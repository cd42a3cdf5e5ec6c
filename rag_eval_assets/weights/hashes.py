"""SHA-256 of large files, remembered between processes: a run that loads no weights need not read them either."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.home import Home
from rag_eval_assets.storage.value_store import ValueStore

_LIMIT_BYTES = 1_000_000
_REMEMBERED_FROM = 1_000_000
"""Bytes of a file; smaller ones are read as fast as looked up."""

_SETTLED_SECONDS = 2
"""A file is remembered only where its last change is this long ago: two changes within one tick of the file system's
clock look alike."""

_read: dict[str, str] = {}
"""Files that this process has read: identity to hash."""


def file_sha256(path: Path) -> str:
    """SHA-256 of a file as hexadecimal digits.

    It is read once and remembered, in this process and in the home's cache where there is a home, as long as place,
    size and times of modification and change stay the same.
    """
    identity, remembered = _identity(path)
    if identity in _read:
        return _read[identity]
    memo = _memo() if remembered else None
    key = bytes.fromhex(identity)
    found = memo.get_many([key]).get(key) if memo is not None else None
    if found is not None and len(found) == hashlib.sha256().digest_size:
        return found.hex()
    digest = read_sha256(path)
    if memo is not None:
        memo.put_many({key: bytes.fromhex(digest)})
    return digest


def read_sha256(path: Path) -> str:
    """SHA-256 of a file whose bytes were read by this process, as hexadecimal digits."""
    identity, _ = _identity(path)
    if identity not in _read:
        with path.open("rb") as stream:
            _read[identity] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _read[identity]


def _identity(path: Path) -> tuple[str, bool]:
    """Hash of what changes whenever the file does, and whether it may be remembered under it."""
    real = path.resolve()
    stat = real.stat()
    settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_SECONDS * 1_000_000_000
    place = [str(real).encode("utf-8", "surrogateescape").hex(), stat.st_dev, stat.st_ino]
    identity = content_hash([*place, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
    return identity, settled and stat.st_size >= _REMEMBERED_FROM


def _memo() -> ValueStore | None:
    home = Home.from_environment()
    # A home is made by a run, and not by looking at a model.
    return ValueStore(home.cache / "hashes.sqlite", _LIMIT_BYTES) if home.root.is_dir() else None
