"""Programs of the system that tests need and pip cannot install: without them a test is skipped, and in CI it fails."""

from __future__ import annotations

import os
import shutil

import pytest


def find_program(name: str, *other_names: str) -> str:
    """Path of a program; `name` is also that of its Debian package. In CI, a missing one is a failure."""
    found = next(filter(None, map(shutil.which, (name, *other_names))), None)
    if found is not None:
        return found
    message = f"needs {name}; on Debian or Ubuntu: apt-get install {name}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser that opens pages."""
    return find_program("chromium", "chromium-browser")
