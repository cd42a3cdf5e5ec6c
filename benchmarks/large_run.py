"""How long, and with how much memory, are many rows with long contexts loaded and evaluated?

    python benchmarks/large_run.py --load-only               # 2,400 rows with contexts of 4,000 characters
    python benchmarks/large_run.py --rows 24000 --load-only
    python benchmarks/large_run.py                           # loads them, and runs the embedded suite over them

Prints one JSON object: seconds, and the largest resident memory of each process in MiB. The rows are made from the
packaged sample, the same in every run; what they score says nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag_eval_assets.dataset.packaged import sample_documents, sample_questions

SUITE = """\
name: large
datasets:
  - file: {file}
corpus:
  source: contexts
targets:
  pipeline:
    type: embedded
scorers:
  - type: bertscore
    model: all-MiniLM-L6-v2
  - type: sentence_cosine
"""

LOADS = """
import json, re, sys, time
from pathlib import Path
from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.suite.load import read_suite

def peak():
    # Unlike getrusage's, this one does not begin with what the parent process held.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024

suite, before, started = read_suite(Path(sys.argv[1])), peak(), time.perf_counter()
examples = load_examples(suite)
loaded, with_examples = time.perf_counter(), peak()
corpus = load_corpus(suite)
print(json.dumps({
    "examples": examples.total, "documents": len(corpus.documents), "table_mib": round(examples.table.nbytes / 2**20),
    "seconds_examples": round(loaded - started, 2), "seconds_corpus": round(time.perf_counter() - loaded, 2),
    "peak_mib_before": before, "peak_mib_examples": with_examples, "peak_mib_corpus": peak(),
}))
"""
"""What loads the rows, in a process of its own: its arguments are the suite's path."""


def rows(count: int, characters: int) -> Iterator[dict[str, str]]:
    """Rows whose contexts are distinct: a sentence of their own, then sentences of the sample in random order."""
    draw = random.Random(1)
    documents = [json.loads(line)["text"] for line in sample_documents().read_text(encoding="utf-8").splitlines()]
    sentences = [part.strip() for text in documents for part in text.replace("\n", " ").split(". ") if len(part) > 30]
    asked = [
        row.values
        for row in sample_questions().read(("question", "reference_answer"))
        if row.values["reference_answer"]
    ]
    for number in range(count):
        question = asked[number % len(asked)]
        parts = [f"This is note {number} of the archive"]
        while sum(map(len, parts)) + 2 * len(parts) < characters:
            parts.append(draw.choice(sentences))
        yield {
            "id": f"n{number}",
            "question": f"{question['question']} See note {number}.",
            "answer": question["reference_answer"] or "",
            "context": ". ".join(parts)[: characters - 1] + ".",
        }


def write(path: Path, count: int, characters: int) -> None:
    """Write the rows as parquet, JSON lines or CSV, whichever the path's ending says."""
    made = rows(count, characters)
    if path.suffix == ".parquet":
        schema = pa.schema([(name, pa.string()) for name in ("id", "question", "answer", "context")])
        with pq.ParquetWriter(path, schema) as writer:
            while batch := list(islice(made, 1_000)):
                writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.DictWriter(file, ("id", "question", "answer", "context"))
            writer.writeheader()
            writer.writerows(made)
        else:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in made)


def measure(command: list[str], folder: Path) -> tuple[dict[str, Any], float, int]:
    """The JSON object that a command prints, its seconds, and the most MiB that it or a child of it held at once."""
    variables = {**os.environ, "RAG_EVAL_HOME": str(folder / "home"), "DAGSTER_DISABLE_TELEMETRY": "1"}
    variables.pop("DAGSTER_HOME", None)
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, *command], cwd=folder, env=variables, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command[:3])} ended with {process.returncode}")
    return json.loads(printed), time.perf_counter() - started, usage.ru_maxrss // 1024


def main() -> None:
    """Make the rows, load them, run over them, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_400)
    parser.add_argument("--characters", type=int, default=4_000, help="of each context")
    parser.add_argument("--format", choices=("parquet", "jsonl", "csv"), default="parquet")
    parser.add_argument("--load-only", action="store_true", help="do not run the suite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data, suite = folder / f"rows.{options.format}", folder / "large.yaml"
        write(data, options.rows, options.characters)
        suite.write_text(SUITE.format(file=data.name), encoding="utf-8")
        loaded, _, _ = measure(["-c", LOADS, str(suite)], folder)
        result: dict[str, Any] = {**vars(options), "data_mib": round(data.stat().st_size / 2**20, 1), "load": loaded}
        if not options.load_only:
            ran, seconds, peak = measure(["-m", "rag_eval_assets.cli", "run", str(suite), "--json"], folder)
            stages = {name: round(value, 2) for name, value in ran["seconds"].items()}
            result["run"] = {"seconds": round(seconds, 1), "peak_mib": peak, "stages": stages, "counts": ran["counts"]}
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
