"""Linear layers over all tokens of a batch: with oneDNN's reordered weights where torch has its operators, else plain.

The operators are torch's own but private (they serve its compiler), so they are tried once before they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Linear = Callable[[Tensor], Tensor]

LEAST_ROWS = 16
"""Products of fewer rows take other kernels, whose sums have another order."""

TILE_ROWS = 256
"""Rows of every product in bf16, where the order of sums follows the number of rows however many there are."""

ROWS_STEP = 64
"""Products in fp32 are filled up to a multiple of it: oneDNN compiles, and keeps, code for every number of rows that it
meets, and with hundreds of them that code is larger than the model. At least `LEAST_ROWS`."""

_HINT_ROWS = 512
"""Rows for which oneDNN chooses the layout of the weights."""


def linear(weight: Tensor, bias: Tensor, *, gelu: bool = False) -> Linear:
    """`x -> x @ weight.T + bias`, through the exact GELU where asked for, for x of shape (rows, inputs).

    A row's result depends on that row alone, provided that x has as many rows as `filled_rows` says.

    Args:
        weight: shape (outputs, inputs). Nothing of its memory is used once this has returned.
        bias: shape (outputs,).
        gelu: apply GELU, x * Phi(x), with the error function.
    """
    import torch

    whole = _whole(weight, bias, gelu=gelu)
    if weight.device.type != "cpu" or weight.dtype == torch.float32:
        return whole
    return lambda x: torch.cat([whole(x[start : start + TILE_ROWS]) for start in range(0, len(x), TILE_ROWS)])


def filled_rows(rows: int, dtype: torch.dtype) -> int:
    """How many rows a batch of `rows` is to be filled up to."""
    import torch

    step = ROWS_STEP if dtype == torch.float32 else TILE_ROWS
    return -(-rows // step) * step


def _whole(weight: Tensor, bias: Tensor, *, gelu: bool) -> Linear:
    import torch

    if weight.device.type != "cpu" or not has_packed_linear(weight.dtype):
        # Copied, for a mapped weight would keep all pages of its file.
        weight, plain = weight.clone(), torch.nn.functional.linear
        if gelu:
            return lambda x: torch.nn.functional.gelu(plain(x, weight, bias))
        return lambda x: plain(x, weight, bias)
    operators: Any = torch.ops.mkldnn
    packed = operators._reorder_linear_weight(weight, _HINT_ROWS)
    run, post, how = operators._linear_pointwise, "gelu" if gelu else "none", "none" if gelu else ""
    return lambda x: run(x, packed, bias, post, [], how)


@cache
def has_packed_linear(dtype: torch.dtype) -> bool:
    """Whether torch has the operators here, for this type, and they give the numbers of the plain form."""
    import torch

    if not torch.backends.mkldnn.is_available():
        return False
    try:
        operators: Any = torch.ops.mkldnn
        weight = torch.linspace(-1.0, 1.0, 32 * 32).reshape(32, 32).to(dtype)
        rows, bias = weight[:LEAST_ROWS] * 0.5, weight[0]
        packed = operators._reorder_linear_weight(weight, _HINT_ROWS)
        found = operators._linear_pointwise(rows, packed, bias, "gelu", [], "none")
    # Whatever a torch without them raises, the plain form is always there.
    except Exception:  # noqa: BLE001
        return False
    expected = torch.nn.functional.gelu(torch.nn.functional.linear(rows, weight, bias))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-1
    return torch.allclose(found.float(), expected.float(), rtol=0.0, atol=tolerance)
