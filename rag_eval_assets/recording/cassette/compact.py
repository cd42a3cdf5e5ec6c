"""Taking segments into the shards: sorted by key, one line per request, only the shards that change rewritten."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.cassette.folder import (
    SEGMENTS,
    SHARDS,
    Lines,
    contradicting,
    newest,
    read_lines,
    read_segment,
    segment_paths,
)
from rag_eval_assets.recording.cassette.segment import take_over
from rag_eval_assets.storage.atomic import replace_file

Prefer = Callable[[list[Entry]], Entry]
"""Chooses between recordings of one key that contradict each other."""


def folder_lock(folder: Path) -> FileLock:
    """The lock of whoever rewrites shards."""
    return FileLock(folder / ".shards.lock")


def compact(folder: Path) -> None:
    """Take the segments of processes that are gone into the shards; those of live ones are not even read.

    A kill at any moment loses nothing: a segment is deleted after its shards are on the disk, and taken in again else.

    Raises:
        InfrastructureError: a shard cannot be written.
        OSError: the folder cannot be locked.
    """
    with folder_lock(folder):
        taken = {path: descriptor for path in segment_paths(folder) if (descriptor := take_over(path)) is not None}
        try:
            recorded = newest(entry for path in taken for entry in read_segment(path)[0])
            write_into(folder, recorded)
            for path in taken:
                path.unlink(missing_ok=True)
        finally:
            for descriptor in taken.values():
                os.close(descriptor)
        with suppress(OSError):  # not empty: another process is recording
            (folder / SEGMENTS).rmdir()


def write_into(folder: Path, recorded: Mapping[str, Entry]) -> None:
    """Put entries into their shards, each in the place of older recordings of its key. Needs the folder's lock."""
    for letter in SHARDS:
        fresh = {key: entry for key, entry in recorded.items() if key[0] == letter}
        if fresh:
            path = folder / f"{letter}.jsonl"
            lines = read_lines(path)
            for key, entry in fresh.items():
                _replace(lines, key, entry)
            write_shard(path, lines)


def _replace(lines: Lines, key: str, entry: Entry) -> None:
    older = lines.entries.get(key, [])
    # An older segment may turn up late, and a call that was made again may have returned the same.
    keeps = (
        older
        and not contradicting(older)
        and (older[0][1].recorded_at > entry.recorded_at or older[0][1].response_sha256 == entry.response_sha256)
    )
    if not keeps:
        lines.entries[key] = [(0, entry)]
    lines.damages = [damage for damage in lines.damages if damage.key != key]


def write_shard(path: Path, lines: Lines, prefer: Prefer | None = None) -> bool:
    """Write a shard sorted and without repetitions, where that changes it; says whether it did.

    Damaged lines and, without `prefer`, contradicting ones are kept as they are: only a person can say what to do.
    """
    kept: list[bytes] = []
    for key in sorted(lines.entries):
        entries = [entry for _, entry in lines.entries[key]]
        if prefer is not None and contradicting(lines.entries[key]):
            entries = [prefer(entries)]
        oldest_first = sorted(entries, key=lambda entry: (entry.recorded_at, entry.response_sha256))
        distinct = {entry.response_sha256: entry for entry in reversed(oldest_first)}
        kept.extend(entry.to_line() for entry in sorted(distinct.values(), key=lambda entry: entry.response_sha256))
    kept.extend(damage.raw + b"\n" for damage in lines.damages)
    content = b"".join(kept)
    if path.exists() and path.read_bytes() == content:
        return False
    if content:
        replace_file(path, lambda temporary: _write(temporary, content))
    else:
        path.unlink(missing_ok=True)
    return True


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
