"""The benchmarks run to their end and tell what they measured; no figure is judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.resolve import resolve

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def minilm() -> None:
    try:
        resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the tokenizer of all-MiniLM-L6-v2, as in the extra `offline`: {error}")


def run(*words: str, out: Path) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-m", *words, "--out", str(out)]
    environment = {**os.environ, "RAG_EVAL_HOME": str(out.parent / "home")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), done.stdout


def test_speed_is_measured_at_two_pairs_with_a_tiny_random_model(tmp_path: Path) -> None:
    words = ["speed", "--model", "tiny", "--sizes", "2", "--rounds", "1", "--gemm-seconds", "0.01"]
    words += ["--runs", "all cached"]
    results, table = run("benchmarks.scoring", *words, out=tmp_path / "made" / "results.json")
    rows = {row["label"]: row for row in results["experiments"]["speed"]["rows"]}
    assert list(rows) == ["bert_score.score", "cold", "all cached"]
    assert all(len(row["seconds"]) == len(row["ratio"]) == 1 for row in rows.values())
    assert (
        rows["cold"]["means"]
        == rows["all cached"]["means"]
        == pytest.approx(rows["bert_score.score"]["means"], abs=1e-5)
    )
    assert (rows["cold"]["torch_imported"], rows["all cached"]["torch_imported"]) == (True, False)
    assert results["model"]["random_weights"] is True
    assert "| all cached |" in table
    assert str(Path.home()) not in json.dumps(results)


def test_top_k_is_measured_and_its_ways_agree(tmp_path: Path) -> None:
    words = ["--chunks", "3000", "--questions", "5", "--dimensions", "16", "--rounds", "1"]
    results, printed = run("benchmarks.topk", *words, out=tmp_path / "results.json")
    assert set(results["times_as_fast_as_sorting"]) > {"one by one", "together"}
    assert "memory" in printed


@pytest.mark.soak
def test_memory_is_measured_over_stored_tables(tmp_path: Path) -> None:
    results, table = run("benchmarks.scoring", "memory", "--model", "tiny", "--sizes", "2", out=tmp_path / "made.json")
    rows = results["experiments"]["memory"]["rows"]
    assert [row["pairs"] for row in rows] == [2, 40]
    assert all(0 < row["above_model_mb"] < row["peak_mb"] for row in rows)
    assert "Growth above the model's own size" in table


@pytest.mark.soak
def test_the_parts_of_the_time_are_told(tmp_path: Path) -> None:
    results, table = run("benchmarks.breakdown", "--model", "tiny", "--pairs", "4", out=tmp_path / "made.json")
    parts = ("matrix products", "attention", "normalisation", "matching", "tokens", "cache, written")
    assert all(results["processor_seconds"][part] > 0 for part in parts)
    assert "of the best rate of a core" in table


@pytest.mark.soak
def test_parity_is_told_for_pieces_of_the_same_pairs(tmp_path: Path) -> None:
    rows = [{"answer": f"Answer {number}.", "context": f"One {number}. Another {number}."} for number in range(9)]
    data = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), data)
    words = ["benchmarks.parity", "--model", "tiny", "--data", str(data), "--pairs", "2", "--start", "1"]
    results, _ = run(*words, out=tmp_path / "made.json")
    assert (results["start"], results["bertscore"]["pairs"], results["cosine"]["other_status"]) == (1, 2, 0)
    assert max(results["bertscore"]["largest_difference"].values()) < 1e-5


def test_another_workload_has_new_texts_of_the_same_length() -> None:
    code = (
        "from benchmarks import workload, models; v = models.vocabulary()\n"
        "one, other = workload.pairs(40, v), workload.pairs(40, v)\n"
        "assert one == other != workload.pairs(40, v, seed=1)\n"
        "assert workload.changed(one[0], 0.0) == one[0]\n"
        "new = workload.changed(one[0], 1.0)\n"
        "assert not set(new) & set(one[0])\n"
        "assert [sorted(text.split()) for text in new] == [sorted(text.split()) for text in one[0]]\n"
        "part = workload.changed(one[0], 0.1)\n"
        "print(sum(a != b for a, b in zip(part, one[0])))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 12


def test_without_a_gpu_the_script_ends_with_one_line() -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [ROOT / "benchmarks" / "gpu.sh"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "no GPU: torch finds no CUDA device here, nothing was measured\n"
