"""What a suite needs on this machine: everything is looked at, and each fault is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.preflight import model_needs, needs, require

ROWS = '{"question": "When?", "answer": "At seven.", "context": "The mill opens at seven."}\n{"question": null}\n'


def test_every_need_is_looked_at_although_the_first_is_missing(tmp_path: Path, make, monkeypatch) -> None:
    monkeypatch.setenv("RAG_EVAL_MODELS_DIR", str(tmp_path))
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    found = needs(make.suite(tmp_path), allow_download=False)
    assert [need.name for need in found] == ["examples", "corpus", "model all-MiniLM-L6-v2"]
    assert all(need.found is None and isinstance(need.problem, ConfigurationError) for need in found)
    with pytest.raises(ConfigurationError, match=r"rows\.jsonl"):
        require(found, make.suite(tmp_path))


def test_what_is_there_is_described(tmp_path: Path, make) -> None:
    (tmp_path / "rows.jsonl").write_text(ROWS, encoding="utf-8")
    examples, corpus, *_ = needs(make.suite(tmp_path), allow_download=False)
    assert examples.found == "1 example of rows, 1 row excluded"
    assert corpus.found == "1 document"
    require([examples, corpus], make.suite(tmp_path))


def test_a_model_that_target_and_scorers_share_is_looked_at_once(tmp_path: Path, make) -> None:
    scorers = [{"type": "bertscore", "model": "bert-base-uncased"}, {"type": "sentence_cosine"}]
    found = model_needs(make.suite(tmp_path, scorers=scorers), allow_download=False)
    assert [need.name for need in found] == ["model all-MiniLM-L6-v2", "model bert-base-uncased"]


def test_looking_writes_nothing(tmp_path: Path, make, monkeypatch) -> None:
    monkeypatch.setenv("RAG_EVAL_HOME", str(tmp_path / "home"))
    (tmp_path / "rows.jsonl").write_text(ROWS, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    suite = make.suite(tmp_path)
    needs(suite, allow_download=False)
    assert sorted(tmp_path.rglob("*")) == [*before, tmp_path / "suite.yaml"]
