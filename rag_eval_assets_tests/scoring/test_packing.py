"""Every text is in exactly one batch, batches keep to their budget, and groups hold texts of exactly equal length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_eval_assets.scoring.encoder.packing import LEAST_TOKENS, Group, pack

LENGTHS = st.lists(st.integers(2, 512), max_size=200)


@given(LENGTHS, st.integers(1, 4096), st.integers(0, 8))
def test_every_text_is_packed_once_longest_first_within_the_budget(
    lengths: list[int], most: int, shared_by: int
) -> None:
    batches = list(pack(lengths, most, shared_by=shared_by))
    members = [index for batch in batches for index in batch.members]
    assert sorted(members) == list(range(len(lengths)))
    firsts = [lengths[batch.members[0]] for batch in batches]
    assert firsts == sorted(firsts, reverse=True)
    for batch in batches:
        assert batch.tokens == sum(lengths[index] for index in batch.members)
        assert batch.tokens <= most or len(batch.members) == 1
        rows = [group.length for group in batch.groups for _ in range(group.texts)]
        assert rows == [lengths[index] for index in batch.members] == sorted(rows, reverse=True)
        assert len({group.length for group in batch.groups}) == len(batch.groups)


def test_texts_of_equal_length_are_one_group() -> None:
    (batch,) = pack([5, 7, 5, 7, 7], 1000)
    assert batch.groups == (Group(3, 7), Group(2, 5))


def test_what_room_the_long_texts_leave_is_filled_with_short_ones() -> None:
    batches = list(pack([60, 60, 50, 30, 10], 100))
    assert [batch.members for batch in batches] == [(0, 3, 4), (1,), (2,)]


def test_batches_shrink_towards_the_end_where_nothing_follows() -> None:
    sizes = [batch.tokens for batch in pack([32] * 128, 1024, shared_by=2)]
    assert sizes[0] == 1024
    assert sizes[-2] <= LEAST_TOKENS < sizes[0]
    assert [batch.tokens for batch in pack([32] * 128, 1024)] == [1024] * 4
