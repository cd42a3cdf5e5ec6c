"""The pages of the documentation are run: every command and every snippet, page after page, in one folder.

Tests ask for blocks by the name of a parameter (`page`, `pasted`, and those of `PARAMETERS`) and get every such block
of README.md and docs/.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest
from markdown_it import MarkdownIt

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.resolve import resolve

ROOT = Path(__file__).parents[2]

READING_ORDER = (
    "README.md",
    "docs/README.md",
    "docs/suites.md",
    "docs/data-sets.md",
    "docs/models.md",
    "docs/report.md",
    "docs/recordings.md",
    "docs/dagster.md",
    "docs/recipes.md",
    "docs/troubleshooting.md",
)
"""Pages that are run one after the other in one folder: a later one builds on what the earlier ones evaluated."""

ON_ITS_OWN = ("docs/planted-faults.md", "docs/live-targets.md")
"""Pages that need nothing of the others; they are run in a folder of their own at the same time."""

NOT_RUN = {
    "make demo": "installs an environment; what it then runs, `rag-eval run`, is run here",
    "make test": "is what runs this test",
    "make ui": "never ends by itself; the end-to-end tests start and stop `rag-eval ui`",
    "rag-eval ui my.yaml": "never ends by itself; the end-to-end tests start and stop `rag-eval ui`",
    "rag-eval validate my.yaml --download": "needs the network",
    "rag-eval run my.yaml --only-failed": "refuses where nothing has failed; the tests of the command run it",
}

PARAMETERS = {"command": "sh", "snippet": "python", "settings": "yaml", "query": "sql", "data": "json"}
"""Parameter of a test to the language of the blocks that it gets."""

OURS = ("RAG_EVAL_", "DAGSTER_", "HF_")
SECONDS = 300


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    end: int
    language: str
    content: str

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def name(self) -> str | None:
        """The file that the block is the content of, where its first line says so."""
        named = re.match(r"# ([\w.-]+\.ya?ml)\n", self.content)
        return named[1] if named else None

    @property
    def commands(self) -> list[str]:
        """What is run: lines that are no comment, and of these none that is listed in NOT_RUN."""
        lines = [line for line in self.content.splitlines() if line.strip() and not line.startswith("#")]
        return [line for line in lines if line.split(" #")[0].strip() not in NOT_RUN]


@dataclass(frozen=True)
class Page:
    """One page: its text, and its blocks in order."""

    name: str
    text: str = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)

    @property
    def path(self) -> Path:
        return ROOT / self.name


def read_page(name: str) -> Page:
    text = (ROOT / name).read_text(encoding="utf-8")
    tokens = [token for token in MarkdownIt().parse(text) if token.type == "fence"]
    blocks = [
        Block(name, token.map[0] + 1, token.map[1], token.info.strip(), token.content) for token in tokens if token.map
    ]
    return Page(name, text, tuple(blocks))


ADRS = tuple(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "adr").glob("*.md")))
PAGES = tuple(read_page(name) for name in (*READING_ORDER, *ON_ITS_OWN, *ADRS))


def pasted() -> Iterator[tuple[Block, Block]]:
    """Every block that is run and has its output directly below it."""
    for page in PAGES:
        for block, below in itertools.pairwise(page.blocks):
            if block.language in ("sh", "python", "sql") and below.language == "text" and below.line - block.end == 2:
                yield block, below


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--paste", action="store_true", help="write what the commands print into the pages instead of comparing it"
    )


def paste(block: Block, output: str) -> None:
    """Write `output` into the page in place of the block's content."""
    path = ROOT / block.page
    lines = [line.rstrip() for line in output.rstrip("\n").splitlines()]
    text = re.sub(r"(report: |page:   )\S*?/\.rag-eval", r"\1/home/you/rag-eval-assets/.rag-eval", "\n".join(lines))
    old = path.read_text(encoding="utf-8")
    path.write_text(old.replace(f"```text\n{block.content}```", f"```text\n{text}\n```", 1), encoding="utf-8")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    blocks = [block for page in PAGES for block in page.blocks]
    for parameter, language in PARAMETERS.items():
        if parameter in metafunc.fixturenames:
            wanted = [block for block in blocks if block.language == language]
            metafunc.parametrize(parameter, wanted, ids=lambda block: block.id)
    if "pasted" in metafunc.fixturenames:
        metafunc.parametrize("pasted", list(pasted()), ids=lambda pair: pair[1].id)
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", PAGES, ids=lambda page: page.name)


@dataclass(frozen=True)
class Output:
    """What a block gave: exit code and streams; for a query also the number of its rows."""

    code: int
    stdout: str
    stderr: str
    rows: int = 0


@dataclass(frozen=True)
class Ran:
    """The folder of the pages after everything was run, and what each block gave."""

    folder: Path
    outputs: dict[Block, Output]
    environment: dict[str, str] = field(repr=False)

    def command(self, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one more command, in a folder of its own."""
        return _command(list(words), folder, {**self.environment, **variables})


@pytest.fixture(scope="session")
def docs() -> ModuleType:
    """This module: pages, blocks and what is not run."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    try:
        resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import warm
    finally:
        sys.path.pop(0)
    commands, folder, apart = (tmp_path_factory.mktemp(name) for name in ("bin", "pages", "apart"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment = {
        **kept,
        "PATH": os.pathsep.join((str(commands), str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(commands / "hub"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    (apart / "examples").symlink_to(ROOT / "examples")
    with warm.install(commands, environment), ThreadPoolExecutor(2) as lanes:
        together = lanes.submit(_run_pages, (*READING_ORDER, *ADRS), folder, environment)
        alone = lanes.submit(_run_pages, ON_ITS_OWN, apart, environment)
        yield Ran(folder, {**together.result(), **alone.result()}, environment)


def _run_pages(names: tuple[str, ...], folder: Path, environment: dict[str, str]) -> dict[Block, Output]:
    outputs: dict[Block, Output] = {}
    for block in (block for page in PAGES if page.name in names for block in page.blocks):
        if block.name is not None:
            (folder / block.name).write_text(block.content)
        elif block.language == "sh" and block.commands:
            outputs[block] = _of(["bash", "-euo", "pipefail", "-c", "\n".join(block.commands)], folder, environment)
        elif block.language == "python":
            outputs[block] = _of(["python", "-c", block.content], folder, environment)
        elif block.language == "sql":
            outputs[block] = _query(block.content, folder)
    return outputs


def _of(words: list[str], folder: Path, environment: dict[str, str]) -> Output:
    done = _command(words, folder, environment)
    return Output(done.returncode, done.stdout, done.stderr)


def _command(words: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    first = words[0] if words[0] == "bash" else str(Path(environment["PATH"].split(os.pathsep)[0]) / words[0])
    return subprocess.run(
        [first, *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )


def _query(text: str, folder: Path) -> Output:
    with duckdb.connect(config={"file_search_path": str(folder)}) as connection:
        try:
            found: Any = connection.sql(text)
            return Output(0, str(found), "", len(found))
        except duckdb.Error as error:
            return Output(1, "", str(error))
