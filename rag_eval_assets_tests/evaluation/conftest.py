"""An evaluation of a small suite over an empty store in a temporary folder."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
import yaml

from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.home import Home
from rag_eval_assets.storage.store import LocalStore, Provenance
from rag_eval_assets.suite.load import LoadedSuite, read_suite
from rag_eval_assets.tables import BERTSCORE, EVAL_EXAMPLES, SENTENCE_COSINE, TableSpec

DATE = "2026-03-01"
IDS = ("a", "b", "c")


def suite(folder: Path, **changes: Any) -> LoadedSuite:
    content = {
        "name": "My Suite",
        "datasets": [{"file": "rows.jsonl"}],
        "corpus": {"source": "contexts"},
        "targets": {"Base line": {"type": "embedded"}},
        "scorers": [{"type": "bertscore", "model": "all-MiniLM-L6-v2"}, {"type": "sentence_cosine"}],
        **changes,
    }
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return read_suite(path)


def table(spec: TableSpec, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a table with a harmless value in every column that a row leaves out."""
    harmless = {"string": "x", "int32": 0, "int64": 1, "bool": False}
    filled = [
        {column.name: None if column.nullable else harmless[str(column.dtype)] for column in spec.columns} | row
        for row in rows
    ]
    return pa.Table.from_pylist(filled, schema=spec.schema)


def scores(spec: TableSpec, values: list[Any], status: str = "scored") -> pa.Table:
    """A score table whose value columns all hold the given values."""
    names = [column.name for column in spec.columns[5:]]
    rows = [
        {"example_id": example_id, "status": status, **dict.fromkeys(names, value)}
        for example_id, value in zip(IDS, values, strict=True)
    ]
    return table(spec, rows)


def put(evaluation: Evaluation, name: str, content: pa.Table, target: str | None = "Base line", **facts: Any) -> None:
    evaluation.store.write(evaluation.key(name, target), content, Provenance("1", facts=facts))


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    """An evaluation whose examples are a, b and c."""
    home = Home(tmp_path / "home")
    made = Evaluation(suite(tmp_path), DATE, home, LocalStore(home.tables))
    put(made, "eval_examples", table(EVAL_EXAMPLES, [{"example_id": example_id} for example_id in IDS]), None)
    return made


@pytest.fixture(params=[BERTSCORE, SENTENCE_COSINE], ids=lambda spec: spec.name)
def score_spec(request: pytest.FixtureRequest) -> TableSpec:
    return request.param


@pytest.fixture(scope="session")
def make() -> ModuleType:
    """This module: its functions."""
    return sys.modules[__name__]
