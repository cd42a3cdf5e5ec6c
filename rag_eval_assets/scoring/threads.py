"""Spreads work over threads that compute with one thread each, so that results do not depend on the number of cores.

torch splits sums by its number of threads, which moves their last bits; and its own threads wait for each other at
every operation, which costs a multiple of the time where other processes use the cores too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import ceil
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()


def in_single_threads(function: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]) -> list[Result]:
    """The results of `function` for all items, in order, from as many workers as torch is set to use threads.

    Args:
        function: maps a slice of the items to as many results; each result depends on its item alone.
        items: what to map.

    Raises:
        Exception: whatever `function` raises.
    """
    import torch

    # One caller at a time: the setting is the process's.
    with _lock:
        workers = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            if workers == 1 or len(items) < 2:
                return list(function(items))
            size = ceil(len(items) / workers)
            slices = [items[start : start + size] for start in range(0, len(items), size)]
            return [result for results in _pool(workers).map(function, slices) for result in results]
        finally:
            torch.set_num_threads(workers)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="rag-eval-scoring", initializer=_use_one_thread)


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)
