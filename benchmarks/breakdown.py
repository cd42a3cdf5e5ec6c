"""Where the time of scoring goes: `python -m benchmarks.breakdown --pairs 250`.

Processor seconds of each part, over all threads, of one cold run in one process. Waiting is not counted, so that the
figures hold beside other processes too; the share of a part is that of all seconds that were counted. Of cutting texts
into tokens only this process's own part is counted: the library does the rest in threads of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import gemm, workload
from benchmarks.experiments import token_count
from benchmarks.models import LAYERS, prepare, vocabulary
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.base import Pair, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.cache import open_stores


class Clock:
    """Processor seconds by part; time inside an inner part is not counted for the outer one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()
        self._open = threading.local()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, its seconds counted for `part`."""

        def run(*arguments: Any, **options: Any) -> Any:
            stack: list[float] = self._open.__dict__.setdefault("stack", [])
            stack.append(0.0)
            started = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                taken = time.thread_time() - started
                inner = stack.pop()
                if stack:
                    stack[-1] += taken
                with self._lock:
                    self.seconds[part] += taken - inner

        return run


def watch(clock: Clock) -> None:
    """Let the clock count the parts of scoring, in this process from now on."""
    import torch

    from rag_eval_assets.scoring import bertscore_packed
    from rag_eval_assets.scoring.encoder import bert, encoder, tokens
    from rag_eval_assets.storage.value_store import ValueStore

    def patch(owner: Any, name: str, part: str) -> None:
        setattr(owner, name, clock.timed(part, getattr(owner, name)))

    linear = bert.linear
    bert.linear = lambda *given, **options: clock.timed("matrix products", linear(*given, **options))
    patch(bert._Norm, "__call__", "normalisation")
    patch(bert.Bert, "_attend", "attention")
    patch(bert.Bert, "_embed", "embedding of ids")
    patch(bert.Bert, "_read_layer", "loading")
    patch(bert.Bert, "forward", "sums of residuals")
    patch(encoder.PackedEncoder, "_encode", "unit rows and vectors")
    patch(encoder, "verify", "hash of the weights")
    patch(bertscore_packed, "match", "matching")
    patch(tokens.Tokenizer, "_ids", "tokens")
    patch(ValueStore, "put_many", "cache, written")
    patch(ValueStore, "get_many", "cache, read")
    patch(BertScore, "score_pairs", "all else")
    torch.set_num_threads(torch.get_num_threads())  # imported before the clock starts


def main(arguments: list[str] | None = None) -> None:
    """Score once, and print a table of the parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.breakdown", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--model", choices=list(LAYERS), default="bert-base")
    parser.add_argument("--pairs", type=int, default=250)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--out", type=Path, help="write the seconds there as JSON")
    chosen = parser.parse_args(arguments)
    model = prepare(chosen.model, Home.from_environment().root / "benchmarks")
    pairs = [Pair(one, (other,)) for one, other in zip(*workload.pairs(chosen.pairs, vocabulary()), strict=True)]
    clock = Clock()
    watch(clock)
    with tempfile.TemporaryDirectory() as folder:
        stores = open_stores(Path(folder))
        scorer = BertScore(model.resolved(), layer=model.layer, precision=chosen.precision, stores=stores)
        started = time.perf_counter()
        scorer.score_pairs(pairs, no_advance)
        wall = time.perf_counter() - started
    total = sum(clock.seconds.values())
    parts = dict(sorted(clock.seconds.items(), key=lambda entry: -entry[1]))
    if chosen.out:
        told = {"pairs": chosen.pairs, "model": model.name, "wall": wall, "processor_seconds": parts}
        chosen.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for part, seconds in parts.items():
        sys.stdout.write(f"{part:24} {seconds:8.2f} s {100 * seconds / total:5.1f} %\n")
    sys.stdout.write(f"{'all parts':24} {total:8.2f} s; {wall:.2f} s passed meanwhile\n")
    reached = model.flops_per_token() * token_count(chosen.pairs, seed=0) / parts["matrix products"] / 1e9
    config = json.loads((model.folder / "config.json").read_text(encoding="utf-8"))
    best = gemm.best_core_rate(config["hidden_size"], config["intermediate_size"], chosen.precision, seconds=0.5)
    sys.stdout.write(
        f"products: {reached:.0f} GFLOP/s a core, {100 * reached / best:.0f} % of the best rate of a core\n"
    )


if __name__ == "__main__":
    main()
