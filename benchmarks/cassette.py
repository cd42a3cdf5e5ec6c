"""Size and speed of a cassette, measured in one run: `python benchmarks/cassette.py [VECTORS] [DIMENSIONS]`.

By default 5,000 vectors of 1,536 single-precision numbers, which must take less than 50 MB and load in less than 2 s;
exits with 1 where they do not.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.cassette.store import Cassette, close_cassette, open_cassette
from rag_eval_assets.recording.cassette.vectors import pack, unpack
from rag_eval_assets.recording.request import canonical_request, embeddings_identity, request_key

MOST_BYTES = 50e6
MOST_SECONDS = 2.0
IDENTITY = embeddings_identity("https://api.example/v1", "embed")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and the seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def record(folder: Path, count: int, dimensions: int) -> None:
    """Record `count` vectors as a server prints them: each number the shortest decimal of a single-precision one."""
    random = np.random.default_rng(0)
    cassette = open_cassette(folder)
    cassette.records()
    for number in range(count):
        text = f"Answer number {number} of a run, about as long as a short sentence."
        single = random.normal(size=dimensions).astype(np.float32)
        sent = [float(str(value)) for value in single] if number % 2 else single.tolist()
        meta = {"recorded_at": "2026-03-01T10:00:00+00:00", "latency_ms": 12.345}
        entry = Entry(request_key(IDENTITY, text), canonical_request(IDENTITY, text), {"vector": pack(sent)}, meta)
        cassette.put(entry)
    close_cassette(cassette)


def load_in_a_fresh_process(folder: Path) -> float:
    """Seconds that loading takes where nothing is warm but the disk's cache."""
    program = (
        "import time; from pathlib import Path; from rag_eval_assets.recording.cassette.store import Cassette; "
        f"started = time.perf_counter(); Cassette(Path({str(folder)!r})); print(time.perf_counter() - started)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    """Measure, print one JSON object, and hold the figures against the bounds."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    dimensions = int(sys.argv[2]) if len(sys.argv) > 2 else 1_536
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "bench.cassette"
        _, recording = timed(lambda: record(folder, count, dimensions))
        size = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
        loads = [load_in_a_fresh_process(folder) for _ in range(3)]
        cassette = Cassette(folder)
        keys = [json.loads(line)["key"] for path in folder.glob("*.jsonl") for line in path.read_bytes().splitlines()]
        _, decoding = timed(lambda: [unpack(entry.response["vector"]) for key in keys if (entry := cassette.get(key))])
    figures = {
        "vectors": count,
        "dimensions": dimensions,
        "megabytes": round(size / 1e6, 2),
        "recording_seconds": round(recording, 3),
        "load_seconds": [round(seconds, 3) for seconds in loads],
        "lookup_and_unpack_seconds": round(decoding, 3),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return int(size >= MOST_BYTES or max(loads) >= MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
