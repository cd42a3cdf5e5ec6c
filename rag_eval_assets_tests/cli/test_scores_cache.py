"""`rag-eval scores-cache`: shows what the caches hold, and empties them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rag_eval_assets.cli.app import app
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.base import PairScore
from rag_eval_assets.scoring.cache import LIMIT_VARIABLE, Caches, cache_folder, open_caches
from rag_eval_assets.status import ScoreStatus

SCORE = PairScore(ScoreStatus.SCORED, values={"cosine": 0.5})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAG_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    return tmp_path / "home"


@pytest.fixture
def caches(home: Path) -> Caches:
    caches = open_caches(cache_folder(Home(home)))
    caches.stores.scores.put_many({b"a": SCORE, b"b": SCORE})
    return caches


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["scores-cache", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_stats_show_entries_and_sizes(caches: Caches) -> None:
    lines = run("stats").splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["scores", "2"], ["vectors", "0"], ["tokens", "0"]]
    assert "of 128.0 MB" in lines[0]
    content = json.loads(run("stats", "--json"))
    assert list(content) == ["scores", "vectors", "tokens"]
    assert content["scores"]["entries"] == 2
    assert content["scores"]["limit_bytes"] == 128_000_000
    assert Path(content["scores"]["file"]).is_file()


def test_clear_removes_all(caches: Caches) -> None:
    assert run("clear") == "removed 2 entries\n"
    assert caches.stores.scores.get_many([b"a"]) == [None]
    assert run("clear") == "removed 0 entries\n"


def test_looking_at_caches_that_are_not_there_makes_none(home: Path) -> None:
    assert "0 entries" in run("stats")
    run("clear")
    assert not home.exists()


def test_a_damaged_file_is_said_and_cleared(caches: Caches) -> None:
    file = caches.files["vectors"].file
    file.write_bytes(b"no database" * 1000)
    assert "vectors.sqlite was damaged" in run("stats")
    assert "of a damaged file" in run("stats")
    run("clear")
    assert "of a damaged file" not in run("stats")
