"""Measures exact top-k search over a mapped index: `python -m benchmarks.topk --chunks 100000 --questions 1000`.

Beside it: sorting all scores of each question, which gives the same passages, and a matrix product over all of them
with NumPy's partition, which holds all scores in memory and may turn ties and last bits around.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.subject import peak_megabytes
from rag_eval_assets.targets.chunking import Chunk
from rag_eval_assets.targets.index import Index, Vectors, load_or_build_index


class RandomVectors:
    """An encoder whose vectors cost nothing, so that search and file are measured alone."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._draw = np.random.default_rng(0)

    def encode(self, texts: list[str]) -> Vectors:
        """Unit vectors."""
        vectors = self._draw.standard_normal((len(texts), self._dimensions), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure, say it, and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topk", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        results = {"machine": describe(), **measure(Path(folder), chosen)}
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name, ratios in results["times_as_fast_as_sorting"].items():
        sys.stdout.write(f"{name}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})\n")
    sys.stdout.write(f"memory: {json.dumps(results['memory_mb'])}; all vectors are {results['vectors_mb']:.0f} MB\n")


def measure(folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Build an index, open it, and search it in turns by each way."""
    encoder = RandomVectors(chosen.dimensions)
    chunks = tuple(Chunk(f"d#{number}", "d", ("text",)) for number in range(chosen.chunks))
    memory = {"chunks": peak_megabytes()}
    load_or_build_index(folder / "index.vectors", chunks, encoder, lambda count: None)
    memory["after building"] = peak_megabytes()
    started = time.perf_counter()
    index = load_or_build_index(folder / "index.vectors", chunks, encoder, lambda count: None)
    opened = time.perf_counter() - started
    queries = encoder.encode([""] * chosen.questions)
    ways: dict[str, Callable[[], Any]] = {
        "sorting": lambda: [_sorted(index, query, chosen.k) for query in queries],
        "one by one": lambda: [index.search(query, chosen.k) for query in queries],
        "together": lambda: index.search_many(queries, chosen.k),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, Any] = {}
    for _ in range(chosen.rounds):
        for name in ("one by one", "together", "sorting"):
            started = time.perf_counter()
            found[name] = ways[name]()
            seconds[name].append(time.perf_counter() - started)
            memory.setdefault(name, peak_megabytes())
    started = time.perf_counter()
    _product(index, queries, chosen.k)
    seconds["matrix product, all scores in memory"] = [time.perf_counter() - started]
    assert found["together"] == found["one by one"] == found["sorting"]
    ratios = {
        name: [one / other for one, other in zip(seconds["sorting"], taken, strict=False)]
        for name, taken in seconds.items()
    }
    return {
        "chunks": chosen.chunks,
        "questions": chosen.questions,
        "seconds": seconds,
        "seconds_to_open": opened,
        "times_as_fast_as_sorting": ratios,
        "memory_mb": memory,
        "vectors_mb": chosen.chunks * chosen.dimensions * 4 / 1e6,
    }


def _sorted(index: Index, query: Vectors, k: int) -> list[tuple[Chunk, float]]:
    scores = np.vecdot(index.vectors, query)
    best = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return [(index.chunks[int(row)], float(scores[int(row)])) for row in best]


def _product(index: Index, queries: Vectors, k: int) -> Any:
    scores = queries @ index.vectors.T
    return np.argpartition(scores, -min(k, scores.shape[1]), axis=1)


if __name__ == "__main__":
    main()
