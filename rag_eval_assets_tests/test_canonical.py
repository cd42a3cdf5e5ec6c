"""Equal content has one identity, and different content another."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_assets.canonical import canonical_json, content_hash, sequence_hash, text_hash

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_the_form_is_compact_sorted_utf8() -> None:
    assert canonical_json({"b": [1, 0.1, None], "a": "ü\n"}) == '{"a":"ü\\n","b":[1,0.1,null]}'.encode()


@settings(deadline=None)
@given(values)
def test_what_was_written_reads_back_as_the_same(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


def test_the_order_of_keys_does_not_count_and_the_order_of_items_does() -> None:
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash([1, 2]) != content_hash([2, 1])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_is_nan_or_infinite(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        content_hash({"deep": [number]})


def test_hashes_are_those_of_any_sha256_tool() -> None:
    assert text_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert text_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_borders_between_items_count() -> None:
    sequences = [[], [""], ["ab"], ["a", "b"], ["b", "a"], ["", "ab"], ["ab", ""]]
    assert len({sequence_hash(sequence) for sequence in sequences}) == len(sequences)
