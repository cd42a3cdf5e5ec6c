"""Suite files for tests: a small valid one, and the same with single keys replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

VALID = {
    "datasets": "[{sample: builtin}]",
    "corpus": "{source: sample}",
    "targets": "{pipeline: {type: embedded}}",
    "scorers": "[{type: sentence_cosine}]",
}


@pytest.fixture
def write_suite(tmp_path: Path) -> Callable[..., Path]:
    """Write a valid suite in which the given top-level keys have other values (as YAML; None leaves the key out)."""

    def write(file_name: str = "some.yaml", /, **changes: str | None) -> Path:
        keys = {**VALID, **changes}
        path = tmp_path / file_name
        path.write_text("".join(f"{key}: {value}\n" for key, value in keys.items() if value is not None), "utf-8")
        return path

    return write
