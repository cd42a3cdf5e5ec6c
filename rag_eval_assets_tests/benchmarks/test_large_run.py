"""The benchmark over many rows still runs; what it measures is no matter of tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_it_loads_as_many_rows_as_were_asked_for_each_with_a_context_of_its_own(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "large_run.py"), "--rows", "1200", "--characters", "200"]
    process = subprocess.run(
        [*command, "--format", kind, "--load-only"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    load = json.loads(process.stdout)["load"]
    assert (load["examples"], load["documents"]) == (1200, 1200)
    assert load["peak_mib_before"] <= load["peak_mib_examples"] <= load["peak_mib_corpus"]
    assert list(tmp_path.iterdir()) == []
