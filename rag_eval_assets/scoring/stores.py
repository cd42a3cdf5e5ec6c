"""What the engine asks of a cache: values under content keys, kept by whoever can. Imports no numeric library."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from rag_eval_assets.scoring.base import PairScore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

Value = TypeVar("Value")


class Store(Protocol[Value]):
    """Values by key. A key (16 bytes) covers all that its value depends on, so a value never changes or expires."""

    def get_many(self, keys: Sequence[bytes]) -> Sequence[Value | None]:
        """The value of each key, in order; None where there is none, or none that can be read."""
        ...

    def put_many(self, entries: Mapping[bytes, Value]) -> None:
        """Keep the values, or do not: what is not kept is computed again."""
        ...


@dataclass(frozen=True)
class Stores:
    """What is kept between calls, each kind in a store of its own.

    Attributes:
        scores: what became of a pair.
        vectors: sentence vectors of unit length, float32, shape (dimensions,).
        tokens: token rows of unit length of reference texts, float32, shape (tokens, dimensions); None where they are
            not kept.
    """

    scores: Store[PairScore]
    vectors: Store[Array]
    tokens: Store[Array] | None = None


class MemoryStore(Store[Value]):
    """A bounded store in this process: the entries used last stay.

    Args:
        most: how much is kept, in the unit of `size`.
        size: the size of a value; 1 where it is not given.
    """

    def __init__(self, most: int, size: Callable[[Value], int] | None = None) -> None:
        self._most = most
        self._size = size or _one
        self._entries: OrderedDict[bytes, Value] = OrderedDict()
        self._held = 0

    def get_many(self, keys: Sequence[bytes]) -> list[Value | None]:
        found = [self._entries.get(key) for key in keys]
        for key, value in zip(keys, found, strict=True):
            if value is not None:
                self._entries.move_to_end(key)
        return found

    def put_many(self, entries: Mapping[bytes, Value]) -> None:
        for key, value in entries.items():
            if key not in self._entries:
                self._entries[key] = value
                self._held += self._size(value)
        while self._held > self._most:
            _, dropped = self._entries.popitem(last=False)
            self._held -= self._size(dropped)


def _one(value: object) -> int:
    del value
    return 1
