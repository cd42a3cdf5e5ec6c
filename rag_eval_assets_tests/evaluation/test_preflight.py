"""What a suite needs on this machine: everything is looked at, and each fault is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.preflight import model_needs, needs, require, variable_needs
from rag_eval_assets.suite.load import load_suite

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


def test_all_that_is_missing_is_named_at_once_and_what_says_more(tmp_path: Path, make, monkeypatch) -> None:
    monkeypatch.setenv("RAG_EVAL_MODELS_DIR", str(tmp_path))
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    suite = make.suite(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        require(needs(suite, allow_download=False), suite)
    assert "rows.jsonl' does not exist" in str(caught.value)
    more = "Not there or not usable either: model all-MiniLM-L6-v2 (`rag-eval validate suite.yaml` says why)"
    assert str(caught.value).endswith(more)


def test_the_way_to_a_model_names_the_suite_that_needs_it(tmp_path: Path, make, monkeypatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    scorers = [{"type": "bertscore", "model": "bert-base-uncased"}]
    monkeypatch.setenv("RAG_EVAL_MODELS_DIR", str(tmp_path))
    (tmp_path / "bert-base-uncased").mkdir()
    *_, need = model_needs(make.suite(tmp_path, scorers=scorers), allow_download=False)
    assert "`rag-eval validate suite.yaml --download`" in str(need.problem)
    *_, packaged = model_needs(load_suite("rag-dataset-12000"), allow_download=False)
    assert "`rag-eval validate rag-dataset-12000 --download`" in str(packaged.problem) or packaged.found


def test_a_variable_that_calls_read_is_looked_at_by_name_alone(tmp_path: Path, make, monkeypatch) -> None:
    headers = {"Authorization": {"env": "MILL_TOKEN"}, "X-Tenant": {"env": "MILL_TENANT"}}
    target = {"type": "http", "url": "http://h/", "body": "{question}", "response": {"answer": ""}, "headers": headers}
    scorer = {"type": "similarity", "url": "http://h/", "model": "m", "api_key_env": "MILL_TOKEN"}
    monkeypatch.delenv("MILL_TOKEN", raising=False)
    monkeypatch.setenv("MILL_TENANT", "something secret")
    token, tenant = variable_needs(make.suite(tmp_path, targets={"mill": target}, scorers=[scorer]))
    assert (token.name, tenant.name) == ("variable MILL_TOKEN", "variable MILL_TENANT")
    where = "target mill and scorer similarity"
    assert str(token.problem) == f"not set; {where} reads it for every call that is not replayed"
    assert (tenant.problem, tenant.found) == (None, "set, for target mill")
