"""A small suite with a target and scorers that cost nothing, executed for real: store, journal, reports, event log.

Only what would load a model is replaced; `test_with_the_real_models` replaces nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
import yaml

from rag_eval_assets.evaluation import scorers, stages
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.reporting import EVAL_REPORT
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration import lineage
from rag_eval_assets.orchestration.build import build_definitions, job_name
from rag_eval_assets.orchestration.execute import Executed, execute
from rag_eval_assets.progress import SILENT, Reporter
from rag_eval_assets.scoring.base import Advance, Pair, PairScore
from rag_eval_assets.scoring.registry import SCORERS
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.storage.parquet import read_parquet
from rag_eval_assets.storage.store import LocalStore
from rag_eval_assets.suite.load import LoadedSuite, read_suite
from rag_eval_assets.tables import TableSpec
from rag_eval_assets.targets.base import Answer, Passage

DATE = "2026-03-01"
LATER = "2026-03-02"

DOCUMENTS = [
    {"id": "mill", "title": "The mill", "text": "The old mill on the river opens at seven in the morning every day."},
    {"id": "bees", "title": "Bees", "text": "Marta keeps forty hives of bees in the orchard behind the school."},
    {"id": "ferry", "title": None, "text": "The ferry to the island leaves twice a day from the northern pier."},
]
ROWS = [
    {"id": "q1", "question": "When does the mill open?", "answer": "At seven in the morning.", "context_id": "mill"},
    {"id": "q2", "question": "Who keeps the bees?", "answer": "Marta keeps the bees.", "context_id": "bees"},
    {"id": "q3", "question": "How often does the ferry leave?", "answer": "Twice a day.", "context_id": "ferry"},
    {"id": "q4", "question": "Where are the hives?", "answer": "Behind the school.", "context_id": "bees"},
]
PASSAGES = tuple(Passage(f"{d['id']}#0", str(d["id"]), str(d["text"]), 0.9 - 0.1 * n) for n, d in enumerate(DOCUMENTS))

SHARED = ("corpus", "eval_examples")
STEPS = ("generated_answers", "retrieval_matches", "bertscore", "sentence_cosine", EVAL_REPORT, "score_history")

Reply = str | None | Exception


@dataclass
class ScriptedTarget:
    """A target that replies what it was told to, or else always the same."""

    name: str
    replies: Mapping[str, Reply]
    calls: list[str]

    def identity(self) -> dict[str, Any]:
        return {"type": "scripted", "name": self.name}

    async def prepare(self, reporter: Reporter) -> None:
        del reporter

    async def answer(self, question: str, trial: int) -> Answer:
        self.calls.append(question)
        reply = self.replies.get(question, f"{self.name} says: at seven in the morning")
        if isinstance(reply, Exception):
            raise reply
        return Answer(reply, PASSAGES, generator=self.name)

    async def close(self) -> None:
        pass


class WordOverlap:
    """Share of common words, under the name and table of a real scorer."""

    code_version = "1"

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.name = spec.name

    def for_references(self, references: Iterable[Any]) -> WordOverlap:
        del references
        return self

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        advance(len(pairs))
        return [self._score(pair) for pair in pairs]

    def describe(self) -> dict[str, Any]:
        return {"id": "word-overlap"}

    def _score(self, pair: Pair) -> PairScore:
        reference = pair.references[0]
        if reference is None or not reference.strip():
            return PairScore(ScoreStatus.NO_REFERENCE)
        if pair.candidate is None or not pair.candidate.strip():
            return PairScore(ScoreStatus.EMPTY_ANSWER)
        ours, theirs = (set(re.findall(r"\w+", text.lower())) for text in (pair.candidate, reference))
        value = len(ours & theirs) / len(ours | theirs)
        return PairScore(ScoreStatus.SCORED, values={c.name: value for c in self.spec.columns[5:]})


@dataclass
class Place:
    """A folder with suites and a home of its own, and what the scripted targets are told to reply.

    `execute` writes the persistent event log of the home; `materialize` writes `instance`, which is in memory (and four
    times as fast) unless another is given.
    """

    folder: Path
    instance: dg.DagsterInstance
    replies: dict[str, Reply] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    def suite(self, name: str = "tiny", targets: Sequence[str] = ("pipeline",), **changes: Any) -> LoadedSuite:
        """A suite over the documents and rows above; `documents` and `rows` replace them."""
        files = self.folder / f"{len(list(self.folder.iterdir()))}-files"
        files.mkdir()
        _write_lines(files / "documents.jsonl", changes.pop("documents", DOCUMENTS))
        _write_lines(files / "rows.jsonl", changes.pop("rows", ROWS))
        content = {
            "name": name,
            "description": "Four questions about a village.",
            "owners": ["team:village", "clerk@village.example"],
            "datasets": [{"file": "rows.jsonl", "name": "village", "split": "test"}],
            "corpus": {"source": "file", "file": "documents.jsonl"},
            "targets": {target: {"type": "embedded", "top_k": 3} for target in targets},
            "scorers": [{"type": "bertscore", "model": "all-MiniLM-L6-v2"}, {"type": "sentence_cosine"}],
            "retrieval": {"k": 1},
            **changes,
        }
        path = files / "suite.yaml"
        path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
        return read_suite(path)

    def execute(self, suite: LoadedSuite, date: str = DATE, **options: Any) -> Executed:
        """What `rag-eval run` does."""
        targets = options.pop("targets", list(suite.suite.targets))
        return execute(suite, date, reporter=SILENT, targets=targets, **options)

    def materialize(
        self,
        suite: LoadedSuite,
        names: Sequence[str] = (),
        date: str = DATE,
        *,
        limit: int | None = None,
        targets: Sequence[str] = (),
        instance: dg.DagsterInstance | None = None,
    ) -> dg.ExecuteInProcessResult:
        """What "Materialize" on the page does for a date: all assets or `names`, with the launchpad's `limit`."""
        wanted = [
            lineage.asset_key(suite, blueprint.name, blueprint.target)
            for blueprint in lineage.blueprints(suite)
            if (not names or blueprint.name in names) and (not targets or blueprint.target in (None, *targets))
        ]
        job = build_definitions([suite]).resolve_job_def(job_name(suite))
        return job.execute_in_process(
            instance=instance or self.instance,
            partition_key=date,
            asset_selection=wanted,
            run_config={
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                "resources": {"evaluation": {"config": {} if limit is None else {"limit": limit}}},
            },
            raise_on_error=False,
        )

    def evaluation(self, suite: LoadedSuite, date: str = DATE, limit: int | None = None) -> Evaluation:
        """The evaluation as the stages see it, to look into its tables."""
        return Evaluation(suite, date, self.home, LocalStore(self.home.tables), limit)

    def table(self, suite: LoadedSuite, name: str, date: str = DATE, target: str | None = "pipeline") -> pa.Table:
        key = self.evaluation(suite, date).key(name, None if name in SHARED else target)
        return LocalStore(self.home.tables).read(key)

    def files(self, under: str = "") -> dict[str, bytes]:
        """Every file of tables and reports below `under`, a path relative to the home."""
        roots = [self.home.root / under] if under else [self.home.tables, self.home.reports]
        paths = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
        return {str(path.relative_to(self.home.root)): path.read_bytes() for path in paths}

    def history(self, suite: LoadedSuite, date: str = DATE) -> list[dict[str, Any]]:
        folder = self.home.tables / suite.slug / "pipeline" / "score_history" / f"run_date={date}"
        rows = [read_parquet(path).to_pylist()[0] for path in folder.glob("*.parquet")]
        return sorted(rows, key=lambda row: row["timestamp"])


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@contextmanager
def open_place(folder: Path) -> Iterator[Place]:
    """A place that the environment points to, with scripted targets and scorers that only compare words."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        place = Place(folder, stack.enter_context(dg.DagsterInstance.ephemeral()))
        place.home.dagster.mkdir(parents=True, exist_ok=True)  # a test's own child process may open its place, too
        patch.setenv("RAG_EVAL_HOME", str(place.home.root))
        patch.setenv("DAGSTER_HOME", str(place.home.dagster))
        patch.delenv("RAG_EVAL_EXECUTOR", raising=False)
        patch.delenv("RAG_EVAL_SUITES", raising=False)
        patch.setattr(stages, "open_target", lambda _, name, *rest: ScriptedTarget(name, place.replies, place.calls))
        patch.setattr(scorers, "build_scorer", lambda name, model, **_: WordOverlap(SCORERS[name].spec))
        patch.setattr(lineage, "model_needs", lambda suite, **_: [])
        yield place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with open_place(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One place for all tests of a module that only look at what was made."""
    with open_place(tmp_path_factory.mktemp("place")) as opened:
        yield opened


@pytest.fixture(scope="session")
def village() -> ModuleType:
    """This module: its constants and classes."""
    return sys.modules[__name__]
