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

ON_ITS_OWN = ("docs/planted-faults.md", "docs/benchmarks.md", "docs/live-targets.md")
"""Pages that need nothing of the others; they are run in a folder of their own at the same time."""

WITH_S3 = ("docs/s3.md",)
"""Pages that are run with a bucket of moto's server and the variables that they speak of, also on their own."""

BUCKET = "acme-rag-eval-qa"

NOT_RUN = {
    "make demo": "installs an environment; what it then runs, `rag-eval run`, is run here",
    "make test": "is what runs this test",
    "make bench": "measures for an hour; the tests of benchmarks/ run it with a tiny model",
    "python -m benchmarks.scoring speed --sizes 16 64 --out results.json": "measures for minutes, see `make bench`",
    "python -m benchmarks.breakdown --pairs 250": "measures for a minute; the tests of benchmarks/ run it tiny",
    "python -m benchmarks.parity --model bert-base --pairs 500": "takes minutes, and rows that a checkout lacks",
    "python -m benchmarks.table results.json": "needs the results of the line before",
    "benchmarks/gpu.sh": "needs a GPU; the tests of benchmarks/ run it without one",
    "make ui": "never ends by itself; the end-to-end tests start and stop `rag-eval ui`",
    "rag-eval ui my.yaml": "never ends by itself; the end-to-end tests start and stop `rag-eval ui`",
    "rag-eval validate my.yaml --download": "needs the network",
    "aws cloudformation deploy --stack-name rag-eval-qa --template-file deploy/aws/evaluation-bucket.yaml "
    "--parameter-overrides Environment=qa BucketName=acme-rag-eval-qa --capabilities CAPABILITY_IAM": "asks AWS",
    "rag-eval run my.yaml --only-failed": "refuses where nothing has failed; the tests of the command run it",
}

PARAMETERS = {"command": "sh", "snippet": "python", "settings": "yaml", "query": "sql", "data": "json"}
"""Parameter of a test to the language of the blocks that it gets."""

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
PAGES = tuple(read_page(name) for name in (*READING_ORDER, *ON_ITS_OWN, *WITH_S3, *ADRS))


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
class Commands:
    """The commands of the pages, and the variables that they run with."""

    environment: dict[str, str] = field(repr=False)

    def run(self, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one command in `folder`."""
        return _command(list(words), folder, {**self.environment, **variables})


@dataclass(frozen=True)
class Ran:
    """The folders of the pages after everything was run, and what each block gave."""

    folder: Path
    apart: Path
    outputs: dict[Block, Output]


@pytest.fixture(scope="session")
def docs() -> ModuleType:
    """This module: pages, blocks and what is not run."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def commands(warm: Any) -> Commands:
    try:
        resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")
    return Commands(warm.environment)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory, commands: Commands, s3_server: Any) -> Ran:
    """Everything is run once per process, so the tests that look at it stand in one file, `test_pages`."""
    folder, apart, s3 = (tmp_path_factory.mktemp(name) for name in ("pages", "apart", "s3-page"))
    (apart / "examples").symlink_to(ROOT / "examples")
    environment = commands.environment
    with ThreadPoolExecutor(2) as lanes:
        together = lanes.submit(_run_pages, (*READING_ORDER, *ADRS), folder, environment)
        alone = lanes.submit(_run_pages, ON_ITS_OWN, apart, environment)
        stored = lanes.submit(_run_pages, WITH_S3, s3, {**environment, **_of_s3(s3_server)})
        return Ran(folder, apart, {**together.result(), **alone.result(), **stored.result()})


def _of_s3(server: Any) -> dict[str, str]:
    """The variables of docs/s3.md, over a bucket of that name."""
    server.bucket(BUCKET)
    below = f"arn:aws:s3:::{BUCKET}"
    allowed = [("s3:PutObject", "/qa/*"), ("s3:GetObject", "/qa/*"), ("s3:ListBucket", "")]
    statements = [{"Effect": "Allow", "Action": action, "Resource": below + part} for action, part in allowed]
    user = server.user({"Version": "2012-10-17", "Statement": statements})
    return {
        **{name.upper(): value for name, value in user.items()},
        "AWS_ENDPOINT_URL": server.url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": "eu-central-1",
        "RAG_EVAL_ENV": "qa",
        "RAG_EVAL_REPORT_BUCKET": BUCKET,
        "RAG_EVAL_TABLES": f"s3://{BUCKET}/qa/tables",
    }


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
