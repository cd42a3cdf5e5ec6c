"""Starts the measured processes one after the other, and takes the time of each whole process."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import workload
from benchmarks.models import Model, vocabulary
from rag_eval_assets.storage.parquet import write_parquet

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """One way of scoring.

    Attributes:
        label: what a table calls it.
        subject: a name of `subject.SUBJECTS`.
        start: caches that it finds: `none`, or those that the run with this label left.
        changed: share of the candidates that are others than in the workload.
        precision: fp32 or bf16, for this package.
        scorers: for this package.
        warm: the subject scores a pair of its own before the time of `inner` begins, so that models are loaded.
    """

    label: str
    subject: str
    start: str = "none"
    changed: float = 0.0
    precision: str = "fp32"
    scorers: tuple[str, ...] = ("bertscore",)
    warm: bool = False


@dataclass
class Bench:
    """What all runs of an invocation share.

    Attributes:
        model: the measured model.
        device: cpu or cuda.
        seed: of the workload.
        gemm_seconds: time for each way of computing a matrix product, per round.
        homes: by label, the folder of caches that a run left.
    """

    model: Model
    folder: Path
    device: str = "cpu"
    seed: int = 0
    gemm_seconds: float = 0.3
    homes: dict[str, Path] = field(default_factory=dict[str, Path])

    def measure(self, run: Run, pairs: int) -> dict[str, Any]:
        """Run it in a new process: `seconds` of the whole process, what the subject says, and `failed` where it did."""
        home = self.folder / re.sub("[^a-z0-9]+", "-", run.label)
        shutil.rmtree(home, ignore_errors=True)
        if run.start == "none":
            home.mkdir(parents=True)
        else:
            shutil.copytree(self.homes[run.start], home)
        self.homes[run.label] = home
        spec = {
            "subject": run.subject,
            "texts": str(self._table(pairs) if run.subject == "streamed" else self._texts(pairs, run.changed)),
            "precision": run.precision,
            "scorers": run.scorers,
            "warm": run.warm,
            "device": self.device,
            "model": self.model.name,
            "folder": str(self.model.folder),
            "layer": self.model.layer,
            "random": self.model.random,
        }
        return _process("benchmarks.subject", spec, {"RAG_EVAL_HOME": str(home), "RAG_EVAL_DEVICE": self.device})

    def _texts(self, pairs: int, share: float) -> Path:
        """A file with candidates and references: making them is not to be measured."""
        file = self.folder / f"texts-{pairs}-{share}.json"
        if not file.exists():
            candidates, references = workload.pairs(pairs, vocabulary(), self.seed)
            file.write_text(json.dumps([workload.changed(candidates, share), references]), encoding="utf-8")
        return file

    def _table(self, pairs: int) -> Path:
        """A file with the columns of answers and of their examples, as a run stores them."""
        file = self.folder / f"rows-{pairs}.parquet"
        if not file.exists():
            candidates, references = workload.pairs(pairs, vocabulary(), self.seed)
            rows = {
                "example_id": [f"e{number}" for number in range(pairs)],
                "reference_answer": references,
                "trial": [0] * pairs,
                "status": ["ok"] * pairs,
                "answer": candidates,
            }
            write_parquet(file, pa.table(rows), {})
        return file

    def gemm(self, precision: str) -> dict[str, float]:
        """GFLOP/s of matrix products at the model's shapes, by way of computing."""
        config = json.loads((self.model.folder / "config.json").read_text(encoding="utf-8"))
        spec = {
            "hidden": config["hidden_size"],
            "inner": config["intermediate_size"],
            "precision": precision,
            "seconds": self.gemm_seconds,
        }
        found = _process("benchmarks.gemm", spec, {})
        return {name: value for name, value in found.items() if name != "seconds"}


@contextmanager
def work_folder() -> Generator[Path]:
    """A folder for caches, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="rag-eval-bench-") as folder:
        yield Path(folder)


@contextmanager
def neighbour(wanted: bool) -> Generator[None]:
    """A process that keeps one core busy meanwhile."""
    if not wanted:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            yield
        finally:
            busy.kill()


def _process(module: str, spec: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "true",
        # As where a package is installed: modules are compiled once, not at every start.
        "PYTHONDONTWRITEBYTECODE": "",
        **variables,
    }
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps(spec),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        return {"seconds": seconds, "failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "seconds": seconds}
