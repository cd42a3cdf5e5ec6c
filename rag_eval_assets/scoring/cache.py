"""The caches of the scoring engine on disk: scores, sentence vectors and token embeddings, each kind with its budget.

They lie in `RAG_EVAL_HOME/cache/scores`, may be deleted at any time, and never stop a run. Neither torch nor, before
vectors are asked for, NumPy is imported.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.base import PairScore
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.storage.value_store import Events, ValueStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

Value = TypeVar("Value")

LIMIT_VARIABLE = "RAG_EVAL_CACHE_MB"
"""Environment variable: most megabytes of all scoring caches together; 0 turns them off."""

DEFAULT_LIMIT_MB = 2048
"""Room for the token embeddings of 7,000 reference answers with bert-base (220 kB each), 200,000 sentence vectors and
400,000 scores."""

_SHARES = {"scores": 1, "vectors": 3, "tokens": 12}
"""Sixteenths of the limit. Token embeddings take a hundred times the room of vectors and must not push them out."""


class DiskStore(Generic[Value]):
    """A `Store` (see `scoring.stores`) of values that `encode` turns into bytes and `decode` back, to the last bit."""

    def __init__(self, file: ValueStore, encode: Callable[[Value], bytes], decode: Callable[[bytes], Value]) -> None:
        self.file = file
        self._encode = encode
        self._decode = decode

    def get_many(self, keys: Sequence[bytes]) -> list[Value | None]:
        """The value of each key, in order; None where there is none, or none that can be read."""
        found = self.file.get_many(keys)
        return [self._value(found[key]) if key in found else None for key in keys]

    def put_many(self, entries: Mapping[bytes, Value]) -> None:
        """Keep the values as far as there is room."""
        self.file.put_many({key: self._encode(value) for key, value in entries.items()})

    def _value(self, data: bytes) -> Value | None:
        try:
            return self._decode(data)
        except (ValueError, TypeError, struct.error):  # intact, and written by other code
            self.file.report_damage()
            return None


@dataclass(frozen=True)
class Caches:
    """The caches in one folder.

    Attributes:
        stores: the caches as the engine knows them.
        files: the file under each, by name.
    """

    stores: Stores
    files: Mapping[str, ValueStore]

    def take_events(self) -> dict[str, Events]:
        """What happened to each cache since this was last asked."""
        return {name: file.take_events() for name, file in self.files.items()}


def cache_folder(home: Home) -> Path:
    """Where the scoring caches of a home lie."""
    return home.cache / "scores"


def open_stores(folder: Path) -> Stores:
    """The caches in `folder` as the engine knows them; see `open_caches`."""
    return open_caches(folder).stores


def open_caches(folder: Path) -> Caches:
    """The caches in `folder`: one object per process, folder and limit. No file is made before something is stored.

    Raises:
        ConfigurationError: `RAG_EVAL_CACHE_MB` is no number from 0.
    """
    return _caches(folder, limit_mb())


@cache
def _caches(folder: Path, limit: int) -> Caches:
    files = {
        name: ValueStore(folder / f"{name}.sqlite", limit * 1_000_000 * share // sum(_SHARES.values()))
        for name, share in _SHARES.items()
    }
    stores = Stores(
        scores=DiskStore(files["scores"], encode_score, decode_score),
        vectors=DiskStore(files["vectors"], encode_array, decode_array),
        tokens=DiskStore(files["tokens"], encode_array, decode_array),
    )
    return Caches(stores, files)


def limit_mb() -> int:
    """The limit of all caches together in megabytes; 0 where they are off.

    Raises:
        ConfigurationError: `RAG_EVAL_CACHE_MB` is no number from 0.
    """
    given = os.environ.get(LIMIT_VARIABLE, "").strip() or str(DEFAULT_LIMIT_MB)
    if not (given.isascii() and given.isdigit()):
        raise ConfigurationError(
            f"{LIMIT_VARIABLE} is {given!r}", fix=f"Give whole megabytes, such as {DEFAULT_LIMIT_MB}; 0 turns it off"
        )
    return int(given)


def describe_events(events: Mapping[str, Events]) -> list[str]:
    """What went wrong or was left out, as sentences for people; empty where nothing did."""
    lines = [note for happened in events.values() for note in happened.notes]
    damaged = sum(happened.damaged for happened in events.values())
    return [*lines, f"{damaged} damaged cache entries were computed again"] if damaged else lines


def encode_score(score: PairScore) -> bytes:
    """A pair's score as JSON; a float's shortest decimal form gives the same bits again."""
    return json.dumps([score.status.value, score.truncated, score.values, score.detail]).encode("ascii")


def decode_score(data: bytes) -> PairScore:
    """The inverse of `encode_score`."""
    status, truncated, values, detail = json.loads(data)
    return PairScore(ScoreStatus(status), truncated, values, detail)


def encode_array(array: Array) -> bytes:
    """Number of dimensions, shape (32 bits each) and float32 values, all little-endian."""
    header = struct.pack(f"<I{array.ndim}I", array.ndim, *array.shape)
    return header + array.astype("<f4", copy=False).tobytes()


def decode_array(data: bytes) -> Array:
    """The inverse of `encode_array`; the array is the caller's own."""
    import numpy as np

    (dimensions,) = struct.unpack_from("<I", data)
    shape = struct.unpack_from(f"<{dimensions}I", data, 4)
    values: NDArray[Any] = np.frombuffer(data, "<f4", offset=4 + 4 * dimensions)
    return values.reshape(shape).astype(np.float32)
