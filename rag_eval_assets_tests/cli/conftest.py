"""`rag-eval` as a script runs it: a process of its own, since exit codes and streams are what is promised."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.resolve import resolve

ROWS = [
    ("Where does the ferry land?", "It lands at the stone quay.", "The ferry lands at the stone quay of the village."),
    ("When is the mill open?", "The mill is open on Fridays.", "The old mill by the river is open on Fridays."),
    ("Who keeps the archive?", "A teacher keeps it.", "A retired teacher keeps the archive above the bakery."),
]


@dataclass
class Place:
    """A folder with suites, and the home that runs in it write to."""

    folder: Path
    warm: Any = field(repr=False)
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"

    def environment(self, **variables: str) -> dict[str, str]:
        return {**self.warm.environment, "RAG_EVAL_HOME": str(self.home), **variables}

    @staticmethod
    def command(*arguments: str) -> list[str]:
        """The words that start a process anew, for what is said about starting and stopping."""
        return [sys.executable, "-m", "rag_eval_assets.cli", *arguments]

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in a process that was forked with everything imported."""
        return subprocess.run(
            self.warm.command("rag-eval", *arguments),
            cwd=self.folder,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def rows(self, rows: list[tuple[str, str, str]], name: str = "rows.jsonl") -> None:
        lines = [json.dumps(dict(zip(("question", "answer", "context"), row, strict=True))) for row in rows]
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def suite(self, name: str = "harbour.yaml", **changes: Any) -> str:
        """Write a small valid suite, its top-level keys changed as told, and return the file's name."""
        if not (self.folder / "rows.jsonl").exists():
            self.rows(ROWS)
        content = {
            "datasets": [{"file": "rows.jsonl"}],
            "corpus": {"source": "contexts"},
            "targets": {"pipeline": {"type": "embedded"}},
            "scorers": [{"type": "sentence_cosine"}],
            **changes,
        }
        (self.folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
        return name


@pytest.fixture
def place(tmp_path: Path, warm: Any) -> Place:
    return Place(tmp_path, warm)


@pytest.fixture(scope="session")
def make_place(warm: Any) -> Callable[[Path], Place]:
    return lambda folder: Place(folder, warm)


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder of all-MiniLM-L6-v2 on this machine."""
    try:
        return resolve("all-MiniLM-L6-v2", allow_download=False).path
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")


@dataclass(frozen=True)
class Evaluated:
    """A whole run with `--json` of a suite with two targets, and what it left."""

    place: Place
    suite: str
    process: subprocess.CompletedProcess[str]
    result: dict[str, Any]

    @property
    def report(self) -> Path:
        return Path(self.result["reports"][0]["report"])


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory, weights: Path, warm: Any) -> Evaluated:
    place = Place(tmp_path_factory.mktemp("evaluated"), warm)
    targets = {"first": {"type": "embedded"}, "second": {"type": "embedded", "top_k": 2}}
    suite = place.suite(targets=targets)
    process = place.run("run", suite, "--json")
    assert process.returncode == 0, process.stderr
    return Evaluated(place, suite, process, json.loads(process.stdout))
