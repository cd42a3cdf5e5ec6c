"""Which texts are computed together: batches of whole texts, in groups of exactly equal length, with no padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rag_eval_assets.scoring.encoder.kernels import ROWS_STEP

MOST_TOKENS = 1024
"""Tokens of a batch: beyond it the feed-forward part's buffer leaves the processor's cache."""

LEAST_TOKENS = 256
"""Below it the matrix products lose their speed."""


@dataclass(frozen=True)
class Group:
    """Texts of equal length that lie one after another in a batch."""

    texts: int
    length: int


@dataclass(frozen=True)
class Batch:
    """Texts that are computed together, longest first.

    Attributes:
        members: positions of the texts in what was packed.
        groups: how many texts of which length, in the same order.
    """

    members: tuple[int, ...]
    groups: tuple[Group, ...]

    @property
    def tokens(self) -> int:
        """Rows of the batch."""
        return sum(group.texts * group.length for group in self.groups)


def pack(lengths: Sequence[int], most: int = MOST_TOKENS, *, shared_by: int = 0) -> Iterator[Batch]:
    """Batches of at most `most` tokens (or one longer text), longest texts first, each filled with
    shorter ones; every text is in exactly one batch.

    What is in a batch moves no bit of any result; it is a matter of speed alone.

    Args:
        lengths: tokens of each text.
        most: tokens of a batch.
        shared_by: workers that have nothing else to do after these texts. Batches then become smaller towards the
            end, so that the workers finish together; 0 where other batches follow.
    """
    waiting = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    left = sum(lengths)
    while waiting:
        room = _budget(left, most, shared_by)
        members: list[int] = []
        passed: list[int] = []
        shortest = lengths[waiting[-1]]
        for place, index in enumerate(waiting):
            if members and room < shortest:
                passed.extend(waiting[place:])
                break
            # Also shorter ones further on: rows that no text fills are computed all the same (`kernels.ROWS_STEP`).
            if not members or lengths[index] <= room:
                members.append(index)
                room -= lengths[index]
            else:
                passed.append(index)
        waiting = passed
        yield _batch(members, lengths)
        left -= sum(lengths[index] for index in members)


def _budget(left: int, most: int, shared_by: int) -> int:
    """Half of a worker's fair share of the tokens that are left, within reason."""
    if not shared_by:
        return most
    share = -(-left // (2 * shared_by))
    return min(most, max(LEAST_TOKENS, -(-share // ROWS_STEP) * ROWS_STEP))


def _batch(members: Sequence[int], lengths: Sequence[int]) -> Batch:
    groups = [Group(len(list(same)), length) for length, same in groupby(lengths[index] for index in members)]
    return Batch(tuple(members), tuple(groups))
