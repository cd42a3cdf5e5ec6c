"""Packing loses no bit, takes single precision where it can, and refuses what is no vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_eval_assets.recording.cassette.vectors import IncomparableError, cosine, from_base64, pack, unpack


@pytest.mark.parametrize(
    ("values", "form"),
    [
        ([1, 0, -3], "float32"),
        ([0.5, 0.10000000149011612], "float32"),
        ([0.6, 0.8], "decimal32"),
        ([1e-7, -0.0, 123456.7], "decimal32"),
        ([1 / 3], "float64"),
        ([1e200, 1.0], "float64"),
        ([0.1, 0.10000000149011612], "float64"),
        ([], "float32"),
    ],
)
def test_every_number_comes_back_to_the_last_bit(values: list[float], form: str) -> None:
    packed = pack(values)
    assert packed["form"] == form
    assert unpack(packed).tobytes() == np.asarray(values, dtype=np.float64).tobytes()


def test_a_vector_in_single_precision_takes_four_bytes_a_number() -> None:
    single = np.random.default_rng(0).normal(size=1536).astype(np.float32)
    for sent in (single.tolist(), [float(str(number)) for number in single]):  # widened, or as servers print them
        packed = pack(sent)
        assert len(packed["data"]) == 8192
        assert unpack(packed).tolist() == sent


def test_an_answer_in_base64_is_single_precision_little_endian() -> None:
    assert from_base64("AACAPwAAAMA=").tolist() == [1.0, -2.0]
    for broken in ("AACAPw", "AACA", "?"):
        with pytest.raises(ValueError, match="base64"):
            from_base64(broken)


@pytest.mark.parametrize(
    "packed",
    [
        {},
        {"form": "float32", "dims": 2, "data": "AACAPw=="},
        {"form": "float8", "dims": 1, "data": "AACAPw=="},
        {"form": "float32", "dims": 1, "data": "AACA?w=="},
        {"form": "float32", "dims": 1, "data": "AADAfw=="},
    ],
)
def test_what_is_no_packed_vector_is_refused(packed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no packed vector"):
        unpack(packed)


def test_numbers_that_are_not_finite_are_not_packed() -> None:
    with pytest.raises(ValueError, match="not finite"):
        pack([1.0, math.inf])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, 2, 3], [1, 2, 3], 1.0),
        ([1, 0], [0, 1], 0.0),
        ([1, 0], [-1, 0], -1.0),
        ([1, 0], [0.6, 0.8], 0.6),
        ([3, 4], [4, 3], 0.96),
        ([1, 2, 2], [2, 1, 2], 0.8888888888888888),
        ([1, 2, 3, 4], [4, 3, 2, 1], 0.6666666666666666),
        ([1, 2, 3], [-3, 0.5, 2], 0.2936892392857409),
        ([0.7, -0.1, 0.2, 0.05], [0.1, 0.9, -0.3, 0.4], -0.07875161888536769),
        ([3, 4], [400, 300], 0.96),
    ],
)
def test_cosines_of_v8(left: list[float], right: list[float], expected: float) -> None:
    value = cosine(unpack(pack(left)), unpack(pack(right)))
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 5e-324])
def test_large_and_small_numbers_overflow_nothing(scale: float) -> None:
    assert cosine(np.array([scale, 0.0]), np.array([scale, 0.0])) == 1.0
    assert cosine(np.array([1e200, 1e200]), np.array([1e-200, -1e-200])) == 0.0


def test_rounding_leads_to_no_value_above_one() -> None:
    assert cosine(np.array([1.0, 1.0, 1.0]), np.array([2.0, 2.0, 2.0])) == 1.0


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [([0, 0], [1, 1], "zero magnitude"), ([], [], "zero magnitude"), ([1], [1, 2], r"\(1 and 2\)")],
)
def test_vectors_without_a_cosine_say_why(left: list[float], right: list[float], said: str) -> None:
    with pytest.raises(IncomparableError, match=said):
        cosine(np.array(left, dtype=np.float64), np.array(right, dtype=np.float64))
