"""Spreads work over threads that compute with one thread each, so that results do not depend on the number of cores.

torch splits sums by its number of threads, which moves their last bits; and its own threads wait for each other at
every operation, which costs a multiple of the time where other processes use the cores too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from math import ceil
from typing import ParamSpec, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

# Reentrant: who works in single threads may call something that does so too.
_lock = threading.RLock()


class Workers:
    """Threads that take tasks from one queue.

    Attributes:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def submit(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        """Let a worker call `function`; tasks are begun in the order in which they are submitted."""
        return _pool(self.count).submit(function, *args, **kwargs)


@contextmanager
def single_threads(most: int | None = None) -> Generator[Workers]:
    """Workers, as many as torch is set to use threads, and one compute thread for each of them and for the caller.

    Args:
        most: at most so many workers.
    """
    import torch

    # One caller at a time: the setting is the process's.
    with _lock:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield Workers(min(threads, most) if most else threads)
        finally:
            torch.set_num_threads(threads)


def in_single_threads(function: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]) -> list[Result]:
    """The results of `function` for all items, in order, from as many workers as torch is set to use threads.

    Args:
        function: maps a slice of the items to as many results; each result depends on its item alone.
        items: what to map.

    Raises:
        Exception: whatever `function` raises.
    """
    with single_threads() as workers:
        if workers.count == 1 or len(items) < 2:
            return list(function(items))
        size = ceil(len(items) / workers.count)
        slices = [items[start : start + size] for start in range(0, len(items), size)]
        tasks = [workers.submit(function, part) for part in slices]
        return [result for task in tasks for result in task.result()]


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="rag-eval-scoring", initializer=_use_one_thread)


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads, and would wait for them for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
