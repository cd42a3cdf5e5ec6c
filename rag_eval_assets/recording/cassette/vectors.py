"""Vectors packed into text without losing a bit of what the server sent, and the cosine of two of them.

A vector of 1,536 numbers takes 8 KB in single precision and 16 KB in double, against some 30 KB as JSON.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Vector = NDArray[np.float64]

FLOAT32 = "float32"
"""Every number is a single-precision value."""
DECIMAL32 = "decimal32"
"""Every number is the shortest decimal that names a single-precision value, such as 0.1, which itself is none.

Packed is the single-precision value; unpacked is the decimal again, so that the numbers are those of the answer.
"""
FLOAT64 = "float64"

_WIDTHS: dict[str, str] = {FLOAT32: "<f4", DECIMAL32: "<f4", FLOAT64: "<f8"}


class IncomparableError(ValueError):
    """Two vectors have no cosine."""


def cosine(left: Vector, right: Vector) -> float:
    """Cosine of two vectors, in [-1, 1] and always finite.

    Sums are exactly rounded, so that the value depends neither on the order of summation nor on the processor; vectors
    are scaled by powers of two first, which moves no bit and keeps squares of 1e200 and 1e-200 apart from nothing.

    Raises:
        IncomparableError: the lengths differ, or a vector has no direction.
    """
    if len(left) != len(right):
        raise IncomparableError(f"the vectors have different lengths ({len(left)} and {len(right)})")
    first, second = _scaled(left), _scaled(right)
    length = math.sqrt(_dot(first, first) * _dot(second, second))
    return max(-1.0, min(1.0, _dot(first, second) / length))


def pack(values: Sequence[float] | Vector) -> dict[str, Any]:
    """`values` as JSON: `form`, `dims` and base64 `data` (little-endian), in the smallest form that is exact.

    Raises:
        ValueError: a number is not finite.
    """
    exact = np.asarray(values, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise ValueError("a number of the vector is not finite")
    with np.errstate(over="ignore"):  # too large for single precision: then it is not equal below
        single = exact.astype(np.float32)
    if np.array_equal(single, exact):
        form = FLOAT32
    elif np.isfinite(single).all() and np.array_equal(_decimals(single), exact):
        form = DECIMAL32
    else:
        form = FLOAT64
    data = base64.b64encode(exact.astype(_WIDTHS[form]).tobytes()).decode("ascii")
    return {"form": form, "dims": len(exact), "data": data}


def unpack(packed: Mapping[str, Any]) -> Vector:
    """The numbers of `pack`, to the last bit.

    Raises:
        ValueError: it is no packed vector.
    """
    try:
        form = packed["form"]
        stored = np.frombuffer(base64.b64decode(packed["data"], validate=True), dtype=_WIDTHS[form])
        whole = len(stored) == packed["dims"]
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"no packed vector ({type(error).__name__}: {error})") from error
    if not whole or not np.isfinite(stored).all():
        raise ValueError(f"no packed vector ({len(stored)} numbers for {packed['dims']!r} dimensions, all finite)")
    return _decimals(stored.astype(np.float32)) if form == DECIMAL32 else stored.astype(np.float64)


def from_base64(text: str) -> Vector:
    """The numbers of an answer in base64, which are little-endian single precision by the provider's convention.

    Raises:
        ValueError: it is not base64, or its bytes are no multiple of four.
    """
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float64)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"no base64 of single-precision numbers ({error})") from error


def _scaled(vector: Vector) -> Vector:
    largest = float(np.abs(vector).max()) if len(vector) else 0.0
    if largest == 0.0:
        raise IncomparableError("a vector of zero magnitude has no direction")
    return np.ldexp(vector, -math.frexp(largest)[1])


def _dot(left: Vector, right: Vector) -> float:
    products: list[float] = (left * right).tolist()
    return math.fsum(products)


def _decimals(single: NDArray[np.float32]) -> Vector:
    """Each value's shortest decimal, read as double precision; Arrow does both at a hundred times Python's speed."""
    text = pa.array(single, type=pa.float32()).cast(pa.string())
    return text.cast(pa.float64()).to_numpy(zero_copy_only=False)
