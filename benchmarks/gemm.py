"""The rate of the best matrix product that torch has at a model's shapes: what an encoder could reach at most.

Measured as the engine computes (a thread per core, each with products of its own) and as torch does by itself (all
cores on one product), with torch.mm, with linear layers, and with oneDNN's reordered weights.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

ROUNDS = 3
"""The best of them counts."""


def measure(hidden: int, inner: int, dtype: str, seconds: float, rows: int = 1024) -> dict[str, float]:
    """GFLOP/s by way of computing, over the four products of a layer in their proportions.

    Args:
        hidden, inner: the model's widths.
        dtype: fp32 or bf16.
        seconds: time for each way and round.
        rows: tokens of a batch.
    """
    import torch

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    cores = torch.get_num_threads()
    shapes, operations = _shapes(hidden, inner, rows)
    found: dict[str, float] = {}
    for way, make in (("mm", _mm), ("linear", _linear), ("prepacked", _prepacked)):
        try:
            for threads in dict.fromkeys((1, cores)):
                torch.set_num_threads(threads)
                layers = [_layer(make, rows, shapes, kind) for _ in range(cores // threads)]
                found[f"{way}, {cores // threads} x {threads} threads"] = (
                    _rate(layers, threads, operations, seconds) / 1e9
                )
        except (RuntimeError, AttributeError, NotImplementedError):
            found[way] = 0.0  # this torch or processor does not have it
    torch.set_num_threads(cores)
    return found


def _shapes(hidden: int, inner: int, rows: int) -> tuple[list[tuple[int, int]], float]:
    """The products of a layer, and how many operations they are together."""
    shapes = [(hidden, 3 * hidden), (hidden, hidden), (hidden, inner), (inner, hidden)]
    return shapes, 2.0 * rows * sum(one * other for one, other in shapes)


def _layer(make: Callable[..., Callable[[], Any]], rows: int, shapes: list[tuple[int, int]], kind: Any) -> list[Any]:
    import torch

    with torch.inference_mode():
        return [make(torch.randn(rows, one).to(kind), torch.randn(other, one).to(kind)) for one, other in shapes]


def _mm(left: Any, weight: Any) -> Callable[[], Any]:
    import torch

    turned = weight.t().contiguous()
    return lambda: torch.mm(left, turned)


def _linear(left: Any, weight: Any) -> Callable[[], Any]:
    import torch

    bias = torch.zeros(weight.shape[0], dtype=weight.dtype)
    return lambda: torch.nn.functional.linear(left, weight, bias)


def _prepacked(left: Any, weight: Any) -> Callable[[], Any]:
    import torch

    bias = torch.zeros(weight.shape[0], dtype=weight.dtype)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, left.shape[0])
    return lambda: torch.ops.mkldnn._linear_pointwise(left, packed, bias, "none", [], "")


def _rate(
    workers: list[list[Callable[[], Any]]],
    threads: int,
    operations: float,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Operations per second of all workers together, in the best round."""
    with ThreadPoolExecutor(len(workers)) as pool:
        work = partial(_worker, threads=threads, operations=operations, seconds=seconds, clock=clock)
        return max(sum(pool.map(work, workers)) for _ in range(ROUNDS))


def _worker(
    layer: list[Callable[[], Any]], threads: int, operations: float, seconds: float, clock: Callable[[], float]
) -> float:
    import torch

    torch.set_num_threads(threads)
    with torch.inference_mode():
        for product in layer:
            product()
        started, done = clock(), 0
        while (passed := clock() - started) < seconds:
            for product in layer:
                product()
            done += 1
    return done * operations / passed


def best_core_rate(hidden: int, inner: int, dtype: str, seconds: float, rows: int = 1024) -> float:
    """GFLOP/s of one core in the best way, while all cores multiply: by processor time, whatever else the machine does.

    Args:
        hidden, inner, dtype, seconds, rows: as for `measure`.
    """
    import torch

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    cores = torch.get_num_threads()
    shapes, operations = _shapes(hidden, inner, rows)
    torch.set_num_threads(1)
    found: list[float] = []
    for make in (_mm, _linear, _prepacked):
        layers = [_layer(make, rows, shapes, kind) for _ in range(cores)]
        found.append(_rate(layers, 1, operations, seconds, clock=time.thread_time) / cores / 1e9)
    torch.set_num_threads(cores)
    return max(found)


def main() -> None:
    """Measure the shapes of the model that stdin names, and print one JSON object."""
    spec = json.load(sys.stdin)
    sys.stdout.write(json.dumps(measure(spec["hidden"], spec["inner"], spec["precision"], spec["seconds"])) + "\n")


if __name__ == "__main__":
    main()
