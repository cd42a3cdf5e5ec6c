"""Work spread over threads keeps its order, uses one compute thread each, and passes errors on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence

import pytest
import torch

from rag_eval_assets.scoring.threads import in_single_threads


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_results_keep_the_order_of_the_items_and_every_worker_computes_with_one_thread() -> None:
    barrier = threading.Barrier(4, timeout=30)

    def work(items: Sequence[int]) -> list[tuple[int, int]]:
        # Passes only where four slices are worked on at the same time.
        barrier.wait()
        return [(item, torch.get_num_threads()) for item in items]

    assert in_single_threads(work, range(10)) == [(item, 1) for item in range(10)]
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_an_error_reaches_the_caller_and_the_setting_is_put_back() -> None:
    def fail(items: Sequence[int]) -> list[int]:
        if 7 in items:
            raise ValueError("seven")
        return list(items)

    with pytest.raises(ValueError, match="seven"):
        in_single_threads(fail, range(10))
    assert torch.get_num_threads() == 4
    assert in_single_threads(fail, [1]) == [1]
    assert in_single_threads(fail, []) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_has_workers_of_its_own() -> None:
    code = """
import os, torch
from rag_eval_assets.scoring.threads import in_single_threads
torch.set_num_threads(2)
assert in_single_threads(lambda part: [x + 1 for x in part], [1, 2, 3]) == [2, 3, 4]
child = os.fork()
if child == 0:
    os._exit(0 if in_single_threads(lambda part: [x + 1 for x in part], [1, 2, 3]) == [2, 3, 4] else 1)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "0\n"
