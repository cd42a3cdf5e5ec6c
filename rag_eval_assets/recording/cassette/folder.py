"""Reading a cassette's folder: its shards, and the segments that processes are writing or left behind.

Nothing here writes, so that replay works on a read-only folder and leaves every byte as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.recording.cassette.entry import Damage, Entry, has_whole_response, parse_line

SHARDS = "0123456789abcdef"
"""A shard holds the keys that begin with its name. Fixed, so that branches agree on where a key belongs; sixteen keep
even 100,000 vectors of 1,536 dimensions within the file size that code hosts accept."""

SEGMENTS = ".segments"
"""Folder of the segments: what processes recorded and have not yet sorted into the shards."""


@dataclass
class Lines:
    """What a file holds: entries by key, each with its lines in order, and damaged lines."""

    entries: dict[str, list[tuple[int, Entry]]] = field(default_factory=dict[str, list[tuple[int, Entry]]])
    damages: list[Damage] = field(default_factory=list[Damage])

    def add(self, raw: bytes, file: str, line: int) -> None:
        """Read one line; a blank one is nothing."""
        if not raw.strip():
            return
        parsed = parse_line(raw, file, line)
        if isinstance(parsed, Damage):
            self.damages.append(parsed)
        else:
            self.entries.setdefault(parsed.key, []).append((line, parsed))


def shard_name(key: str) -> str:
    """File of the shard that `key` belongs to."""
    return f"{key[0]}.jsonl"


def shard_paths(folder: Path) -> list[Path]:
    """Every file of recorded calls, sorted: the shards, and whatever else somebody put there."""
    return sorted(folder.glob("*.jsonl"))


def segment_paths(folder: Path) -> list[Path]:
    """The segments that are there now."""
    return sorted((folder / SEGMENTS).glob("*.jsonl"))


def read_lines(path: Path) -> Lines:
    """All lines of a shard; a file that is not there holds none.

    Raises:
        InfrastructureError: it cannot be read.
    """
    found = Lines()
    for number, raw in enumerate(_read(path).split(b"\n"), start=1):
        found.add(raw, path.name, number)
    return found


def read_segment(path: Path, start: int = 0) -> tuple[list[Entry], int]:
    """The whole lines of a segment from byte `start` on, and where they end; a torn last line is left for later.

    A damaged line costs one call: whoever needs it finds nothing and makes the call again.
    """
    raw = _read(path)
    end = raw.rfind(b"\n") + 1
    parsed = (parse_line(line, path.name, 0) for line in raw[start:end].split(b"\n") if line.strip())
    whole = [entry for entry in parsed if isinstance(entry, Entry) and has_whole_response(entry)]
    return whole, max(start, end)


def newest(entries: Iterable[Entry]) -> dict[str, Entry]:
    """By key the entry that was recorded last."""
    found: dict[str, Entry] = {}
    for entry in entries:
        other = found.get(entry.key)
        if other is None or entry.recorded_at >= other.recorded_at:
            found[entry.key] = entry
    return found


def contradicting(lines: list[tuple[int, Entry]]) -> bool:
    """Whether the recordings of one key say different things."""
    return len({entry.response_sha256 for _, entry in lines}) > 1


def all_lines(folder: Path) -> Iterator[tuple[Path, Lines]]:
    """Each shard with its lines."""
    for path in shard_paths(folder):
        yield path, read_lines(path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InfrastructureError(f"{path.name!r} of the cassette cannot be read ({error.strerror})") from error
