"""What all tests share: real servers on loopback, where temporary files lie, and the order of the files."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from rag_eval_assets_tests.servers.engines import keep_engines

pytest_plugins = tuple(f"rag_eval_assets_tests.servers.{name}" for name in ("loopback", "bucket", "programs", "warm"))

MEMORY = Path("/dev/shm")
"""Temporary files lie here where there is room: much of a small run's time is SQLite's waiting for the disk."""

ROOM = 4 * 2**30
"""Bytes; ten times what the tests have there at once. In a container the folder often has but 64 MB."""

if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # it may have been asked for already

FIRST = (
    "e2e/test_live.py",
    "docs/test_pages.py",
    "evaluation/test_hundred_real_rows.py",
    "e2e",
    "cli",
    "benchmarks",
    "dataset/test_hub",
    "storage/test_s3_store.py",
    "docs/test_troubleshooting.py",
    "scoring/test_bertscore.py",
    "scoring/test_parity.py",
    "report/test_delivery.py",
    "evaluation/test_planted_faults.py",
    "orchestration",
    "targets",
)
"""Files and folders by the time that they take, the longest first; all others follow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.path))  # stable: within a file the order stays


def _place(path: Path) -> int:
    name = path.relative_to(Path(__file__).parent).as_posix()
    return next((place for place, first in enumerate(FIRST) if name.startswith(first)), len(FIRST))


def pytest_collection_finish() -> None:
    if "dagster" in sys.modules:
        keep_engines()
    # What was imported stays; to look through all of it at every collection takes an eighth of the time.
    gc.collect()
    gc.freeze()
