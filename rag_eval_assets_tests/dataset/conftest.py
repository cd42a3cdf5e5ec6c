"""Suites over files of a test's own folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.suite.load import LoadedSuite, read_suite


@pytest.fixture
def suite_over(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """A suite whose data sets are the given ones (file names, or whole mappings), with a corpus of `corpus`."""

    def make(*data_sets: str | dict[str, Any], corpus: dict[str, Any] | None = None) -> LoadedSuite:
        content = {
            "datasets": [{"file": given} if isinstance(given, str) else given for given in data_sets],
            "corpus": corpus or {"source": "sample"},
            "targets": {"pipeline": {"type": "embedded"}},
            "scorers": [{"type": "sentence_cosine"}],
        }
        path = tmp_path / "tested.yaml"
        path.write_text(yaml.safe_dump(content), "utf-8")
        return read_suite(path)

    return make


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write records as JSON lines."""

    def write(name: str, *records: Any) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        return path

    return write
