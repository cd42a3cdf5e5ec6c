"""What all tests share: real servers on loopback, and the order of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = tuple(f"rag_eval_assets_tests.servers.{name}" for name in ("loopback", "bucket", "programs"))

FIRST = (
    "docs/test_pages.py",
    "e2e/test_live.py",
    "evaluation/test_planted_faults.py",
    "evaluation/test_hundred_real_rows.py",
    "cli",
    "e2e",
    "docs/test_troubleshooting.py",
    "orchestration",
    "targets",
)
"""Files and folders by the time that they take, the longest first; all others follow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.path))  # stable: within a file the order stays


def _place(path: Path) -> int:
    name = path.relative_to(Path(__file__).parent).as_posix()
    return next((place for place, first in enumerate(FIRST) if name.startswith(first)), len(FIRST))
