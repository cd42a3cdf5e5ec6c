"""How near the target stage comes to a service's own speed: `python benchmarks/http_target.py`.

500 questions go to examples/rag_service, which takes 100 ms per answer, 32 at a time, each answer journalled. At best
that takes 500/32 x 0.1 s; the stage is to stay within 1.3 of it. The service runs in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.progress import SILENT
from rag_eval_assets.recording.journal import Journal
from rag_eval_assets.suite.load import read_suite
from rag_eval_assets.tables import EVAL_EXAMPLES
from rag_eval_assets.targets.registry import open_target
from rag_eval_assets.targets.stage import StageOptions, generate_answers

SERVICE = Path(__file__).parents[1] / "examples" / "rag_service"
BOUND = 1.3

SUITE = """
datasets: [{{sample: builtin}}]
targets:
  service:
    type: http
    url: {url}/query
    body: {{question: "{{question}}"}}
    response: {{answer: /answer, passages: {{list: /passages}}}}
scorers: [{{type: sentence_cosine}}]
run: {{concurrency: {concurrency}}}
"""


def stage_seconds(url: str, folder: Path, questions: int, concurrency: int) -> float:
    """Seconds of the whole stage: opening the target, asking, journalling, and making the tables."""
    path = folder / "suite.yaml"
    path.write_text(SUITE.format(url=url, concurrency=concurrency))
    suite = read_suite(path)
    rows = [
        {
            "example_id": f"e{n}",
            "question": f"When does ferry {n} run?",
            "source": "b",
            "source_row": n,
            "row_sha256": "",
        }
        for n in range(questions)
    ]
    examples = pa.Table.from_pylist(rows, schema=EVAL_EXAMPLES.schema)
    with Journal(folder / f"{time.monotonic_ns()}.jsonl") as journal:
        started = time.perf_counter()
        target = open_target(suite, "service", DocumentSet(()), folder)
        made = generate_answers(examples, target, journal, StageOptions(concurrency=concurrency), SILENT)
        seconds = time.perf_counter() - started
    assert made.counts["ok"] == questions, made.counts
    return seconds


def main() -> int:
    """Print each repetition and the median; exit code 1 where the median is beyond the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency-ms", type=float, default=100.0)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    ideal = given.questions / given.concurrency * given.latency_ms / 1000
    command = [sys.executable, str(SERVICE), "--light", "--port", "0", "--latency-ms", str(given.latency_ms)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service,
    ):
        try:
            assert service.stdout is not None
            url = service.stdout.readline().removeprefix("listening on ").strip()
            ratios: list[float] = []
            for _ in range(given.repeat):
                seconds = stage_seconds(url, Path(folder), given.questions, given.concurrency)
                ratios.append(seconds / ideal)
                print(f"{seconds:.3f} s, {seconds / ideal:.3f} of the ideal {ideal:.3f} s")
        finally:
            service.terminate()
    median = sorted(ratios)[len(ratios) // 2]
    print(f"median {median:.3f}, bound {BOUND}")
    return int(median > BOUND)


if __name__ == "__main__":
    sys.exit(main())
