"""The README is run: every command and every snippet of it, in order, in one folder; pasted output is compared."""

from __future__ import annotations

import itertools
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from markdown_it import MarkdownIt

from rag_eval_assets.cli.app import app
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration.compute import EXECUTORS
from rag_eval_assets.suite.load import read_suite
from rag_eval_assets.weights.resolve import resolve

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

NOT_RUN = {
    "make demo": "installs an environment; what it then runs, `rag-eval run`, is run here",
    "make test": "is what runs this test",
    "make ui": "never ends by itself; the end-to-end tests start and stop `rag-eval ui`",
}
SETUP = ("RAG_EVAL_", "DAGSTER_", "HF_")


@dataclass(frozen=True)
class Block:
    """A fenced block of the README."""

    line: int
    language: str
    content: str

    @property
    def commands(self) -> list[str]:
        """What is run: lines that are no comment, and of these none that is listed in NOT_RUN."""
        lines = [line for line in self.content.splitlines() if line.strip() and not line.startswith("#")]
        return [line for line in lines if line.split(" #")[0].strip() not in NOT_RUN]


BLOCKS = [
    Block((token.map or [0])[0] + 1, token.info.strip(), token.content)
    for token in MarkdownIt().parse(README)
    if token.type == "fence"
]

(LAYOUT,) = [block for block in BLOCKS if block.content.startswith("rag_eval_assets/")]


def blocks(language: str) -> list[Any]:
    return [pytest.param(block, id=f"line {block.line}") for block in BLOCKS if block.language == language]


@dataclass(frozen=True)
class Ran:
    """The README's folder after everything was run, and what each block printed."""

    folder: Path
    processes: dict[Block, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    try:
        resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")
    folder = tmp_path_factory.mktemp("readme")
    commands = tmp_path_factory.mktemp("bin")
    script = commands / "rag-eval"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rag_eval_assets.cli "$@"\n')
    script.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(SETUP)}
    environment |= {
        "PATH": os.pathsep.join((str(commands), str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
        "HF_HUB_OFFLINE": "1",
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    processes: dict[Block, subprocess.CompletedProcess[str]] = {}
    for block in BLOCKS:
        if named := re.match(r"# (\S+\.yaml)\n", block.content):
            (folder / named[1]).write_text(block.content)
        interpreter = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}.get(block.language)
        text = "\n".join(block.commands) if block.language == "sh" else block.content
        if interpreter and text:
            processes[block] = subprocess.run(
                [*interpreter, text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
    return Ran(folder, processes)


def test_every_block_says_its_language_and_there_is_some_of_each() -> None:
    assert {block.language for block in BLOCKS} == {"sh", "yaml", "python", "sql", "text"}


def test_only_what_cannot_be_run_is_left_out() -> None:
    lines = {
        line.split(" #")[0].strip() for block in BLOCKS if block.language == "sh" for line in block.content.splitlines()
    }
    assert set(NOT_RUN) <= lines


@pytest.mark.parametrize("block", blocks("sh"))
def test_a_command_ends_well(block: Block, ran: Ran) -> None:
    if not block.commands:
        pytest.skip("; ".join(f"{command}: {why}" for command, why in NOT_RUN.items() if command in block.content))
    process = ran.processes[block]
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("block", blocks("python"))
def test_a_python_snippet_prints_something(block: Block, ran: Ran) -> None:
    process = ran.processes[block]
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() != ""


@pytest.mark.parametrize("block", blocks("yaml"))
def test_a_suite_or_a_part_of_one_is_valid(block: Block, ran: Ran) -> None:
    content = yaml.safe_load((ran.folder / "my.yaml").read_text()) | yaml.safe_load(block.content)
    path = ran.folder / f"line-{block.line}.yaml"
    path.write_text(yaml.safe_dump(content))
    read_suite(path)


@pytest.mark.parametrize("block", blocks("sql"))
def test_a_query_gives_rows(block: Block, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ran.folder)
    with duckdb.connect() as connection:
        assert len(connection.execute(block.content).fetchall()) == 5


def pasted() -> Iterator[Any]:
    """Every block that is run and is followed by its output."""
    for block, after in itertools.pairwise(BLOCKS):
        if block.language in ("sh", "python") and after.language == "text" and after is not LAYOUT:
            yield pytest.param(block, after, id=f"line {after.line}")


@pytest.mark.parametrize(("block", "output"), list(pasted()))
def test_pasted_output_is_what_is_printed(block: Block, output: Block, ran: Ran) -> None:
    words, numbers = without_run(output.content)
    found_words, found_numbers = without_run(ran.processes[block].stdout)
    assert found_words == words
    # Another processor may round the fourth decimal the other way.
    assert all(math.isclose(a, b, abs_tol=2e-4) for a, b in zip(numbers, found_numbers, strict=True))


def without_run(text: str) -> tuple[str, list[float]]:
    """Text without what differs between runs (ids, dates, folders, hashes), and apart from it its decimal numbers."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"\d{4}([-/])\d{2}\1\d{2}", "<date>", text)
    text = re.sub(r"content [0-9a-f]{12}", "content <hash>", text)
    text = re.sub(r"(report: |page:   ).*?/\.rag-eval", r"\1.rag-eval", text)
    lines = [re.sub(r" +$", "", line) for line in text.rstrip("\n").splitlines()]
    decimal = r"\d+\.\d{2,}"
    joined = "\n".join(lines)
    return re.sub(decimal, "<number>", joined), [float(number) for number in re.findall(decimal, joined)]


def test_the_history_holds_what_every_entry_point_wrote(ran: Ran) -> None:
    """The command line evaluated today, `dagster` and `dg` 2026-01-02; the sample left nothing."""
    history = ran.folder / ".rag-eval" / "tables"
    dates = {
        path.parent.name: len(list(path.parent.iterdir())) for path in history.glob("embedded/*/score_history/*/*")
    }
    assert dates.pop("run_date=2026-01-02") == 2
    assert list(dates.values()) == [1]
    assert len(list(history.glob("my/*/score_history/*/*"))) == 1
    assert not list(history.glob("*~sample/*/score_history"))


def test_the_layout_names_every_package() -> None:
    named = set(re.findall(r"(?m)^  (\w+)/ ", LAYOUT.content))
    packages = {path.parent.name for path in (ROOT / "rag_eval_assets").glob("*/__init__.py")}
    assert named == packages
    for path in re.findall(r"(?m)^(\w+)/", LAYOUT.content):
        assert (ROOT / path).is_dir()


def test_the_table_of_variables_names_every_variable_that_is_read() -> None:
    table = set(re.findall(r"(?m)^\| `([A-Z_]+)` \|", README))
    sources = "".join(path.read_text() for path in (ROOT / "rag_eval_assets").rglob("*.py"))
    read = set(re.findall(r"\bRAG_EVAL_[A-Z_]+", sources))
    assert table == read | {"DAGSTER_HOME", "HF_HUB_OFFLINE"}
    assert all(f"`{name}`" in README for name in EXECUTORS if name != "k8s")


def test_links_to_files_of_the_repository_work() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    files = [link for link in links if "://" not in link]
    assert set(files) >= {"LICENSE", "CHANGELOG.md"}
    assert [link for link in files if not (ROOT / link).is_file()] == []


def test_every_command_of_the_command_line_is_mentioned() -> None:
    for command in app.registered_commands:
        name = command.callback.__name__ if command.callback else ""
        assert f"rag-eval {name}" in README, name
