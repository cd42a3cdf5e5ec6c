"""Looking at a cassette as a whole: what is in it, what is wrong with it, and what differs between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.recording.cassette.compact import Prefer, compact, folder_lock, write_shard
from rag_eval_assets.recording.cassette.entry import Damage, Entry, has_whole_response
from rag_eval_assets.recording.cassette.folder import (
    Lines,
    all_lines,
    contradicting,
    newest,
    read_segment,
    segment_paths,
    shard_name,
    shard_paths,
)
from rag_eval_assets.recording.cassette.vectors import IncomparableError, Vector, cosine, unpack
from rag_eval_assets.wording import counted_doing

PREFER: dict[str, Prefer] = {
    "newest": lambda entries: max(entries, key=lambda entry: (entry.recorded_at, entry.response_sha256)),
    "oldest": lambda entries: min(entries, key=lambda entry: (entry.recorded_at, entry.response_sha256)),
}
"""Ways to choose between recordings that contradict each other."""

_NAMED = 3


@dataclass(frozen=True)
class Problem:
    """Something that is wrong: with which key (where it can be told), where, and what."""

    key: str | None
    place: str
    what: str


@dataclass(frozen=True)
class Change:
    """A request that came, went, or has another answer.

    Attributes:
        kind: what happened to it.
        entry: the recording, the newer one of two.
        cosine: of a changed vector, old against new; None of other answers, and where there is no cosine.
    """

    kind: Literal["came", "went", "changed"]
    entry: Entry
    cosine: float | None = None


def entries_of(folder: Path) -> dict[str, Entry]:
    """Every usable recording by key, sorted; of contradicting ones the newest, and of unsorted segments as well.

    Raises:
        ConfigurationError: there is no such folder.
    """
    require_cassette(folder)
    sorted_in = {
        key: PREFER["newest"]([entry for _, entry in lines])
        for _, shard in all_lines(folder)
        for key, lines in shard.entries.items()
    }
    fresh = newest(entry for path in segment_paths(folder) for entry in read_segment(path)[0])
    return dict(sorted({**sorted_in, **fresh}.items()))


def require_cassette(folder: Path) -> None:
    """Raise ConfigurationError where `folder` is none."""
    if not folder.is_dir():
        raise ConfigurationError(f"there is no cassette at {str(folder)!r}", fix="Give its folder, or a suite file")


def problems(folder: Path) -> Iterator[Problem]:
    """What is wrong with a cassette: damaged lines, changed answers, contradictions, keys in a wrong file."""
    require_cassette(folder)
    for path, shard in all_lines(folder):
        for damage in shard.damages:
            yield Problem(damage.key, damage.place, damage.reason)
        for key, lines in shard.entries.items():
            line, entry = lines[0]
            place = f"{path.name}, line {line}"
            if contradicting(lines):
                numbers = " and ".join(str(number) for number, _ in lines)
                yield Problem(key, f"{path.name}, lines {numbers}", "is recorded with different answers")
            elif not has_whole_response(entry):
                yield Problem(key, place, "its response is not the one that was recorded")
            if path.name != shard_name(key):
                yield Problem(key, place, f"belongs into {shard_name(key)}; `rag-eval cassette merge` sorts it in")


def compare(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> list[Change]:
    """The changes from `old` to `new`, by key."""
    changes: list[Change] = []
    for key in sorted({*old, *new}):
        if key not in old:
            changes.append(Change("came", new[key]))
        elif key not in new:
            changes.append(Change("went", old[key]))
        elif old[key].response_sha256 != new[key].response_sha256:
            changes.append(Change("changed", new[key], _moved(old[key], new[key])))
    return changes


def vector_of(entry: Entry) -> Vector | None:
    """The vector of a recording; None of one without a usable vector."""
    packed: Any = entry.response.get("vector")
    with suppress(ValueError, AttributeError):
        return unpack(packed) if isinstance(packed, Mapping) else None  # pyright: ignore[reportUnknownArgumentType]
    return None


def kind_of(entry: Entry) -> str:
    """What was called, in a few words: the type and the model, or the method and the URL."""
    identity: Any = entry.request.get("identity") or {}
    if "http" in identity:
        return f"http {identity['http'].get('method', '')} {identity['http'].get('url', '')}"
    return f"{identity.get('type', 'unknown')} {identity.get('model', '')}".strip()


def statistics(folder: Path) -> dict[str, Any]:
    """Recordings by kind, vectors by form, bytes, times, and how much is wrong."""
    entries = entries_of(folder)
    found = list(problems(folder))
    packed = [entry.response["vector"] for entry in entries.values() if vector_of(entry) is not None]
    times = sorted(entry.recorded_at for entry in entries.values() if entry.recorded_at)
    return {
        "recordings": len(entries),
        "bytes": sum(path.stat().st_size for path in [*shard_paths(folder), *segment_paths(folder)]),
        "kinds": dict(sorted(Counter(kind_of(entry) for entry in entries.values()).items())),
        "vectors": dict(sorted(Counter(f"{vector['form']} x {vector['dims']}" for vector in packed).items())),
        "oldest": times[0] if times else None,
        "newest": times[-1] if times else None,
        "problems": len(found),
    }


def rewrite(folder: Path, keep: Callable[[Entry], bool], keep_damage: Callable[[Damage], bool]) -> int:
    """Drop what is not to be kept; returns how many recordings and damaged lines went."""
    require_cassette(folder)
    compact(folder)
    dropped = 0
    with folder_lock(folder):
        for path, shard in all_lines(folder):
            entries = {
                key: kept
                for key, lines in shard.entries.items()
                if (kept := [(number, entry) for number, entry in lines if keep(entry)])
            }
            kept_lines = Lines(entries, [damage for damage in shard.damages if keep_damage(damage)])
            before = sum(map(len, shard.entries.values())) + len(shard.damages)
            gone = before - sum(map(len, entries.values())) - len(kept_lines.damages)
            if gone:
                write_shard(path, kept_lines)
                dropped += gone
    return dropped


def merge(into: Path, others: list[Path], prefer: Prefer | None = None) -> list[str]:
    """Take the recordings of `others` into `into` and sort it; returns the shards that changed.

    Raises:
        ConfigurationError: recordings contradict each other and nobody says which to prefer; nothing is written.
    """
    for folder in (into, *others):
        require_cassette(folder)
    compact(into)
    with folder_lock(into):
        shards: dict[str, Lines] = {path.name: Lines() for path in shard_paths(into)}
        for folder in (into, *others):
            for _, found in all_lines(folder):
                _add(shards, found, folder is into)
        against = [key for shard in shards.values() for key, lines in shard.entries.items() if contradicting(lines)]
        if against and prefer is None:
            named = ", ".join(key[:12] for key in sorted(against)[:_NAMED])
            raise ConfigurationError(
                f"{counted_doing(len(against), 'key', 'is', 'are')} recorded with different answers ({named})",
                fix="Choose with --prefer newest or --prefer oldest; `rag-eval cassette ls` shows when each was made",
            )
        return [name for name in sorted(shards) if write_shard(into / name, shards[name], prefer)]


def _add(shards: dict[str, Lines], found: Lines, own: bool) -> None:
    for key, lines in found.entries.items():
        # Only whole recordings move; what is damaged stays where it is.
        whole = [(number, entry) for number, entry in lines if own or has_whole_response(entry)]
        shards.setdefault(shard_name(key), Lines()).entries.setdefault(key, []).extend(whole)
    if own:
        for damage in found.damages:
            shards.setdefault(damage.file, Lines()).damages.append(damage)


def _moved(old: Entry, new: Entry) -> float | None:
    first, second = vector_of(old), vector_of(new)
    with suppress(IncomparableError):
        return None if first is None or second is None else cosine(first, second)
    return None
