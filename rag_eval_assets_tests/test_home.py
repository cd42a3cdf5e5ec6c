"""Everything local lies under one folder, which comes into being only when something is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home


def test_the_environment_names_it_and_else_it_is_beside_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in ("", None):
        monkeypatch.setenv("RAG_EVAL_HOME", value) if value is not None else monkeypatch.delenv("RAG_EVAL_HOME")
        assert Home.from_environment().root == tmp_path / ".rag-eval"
    monkeypatch.setenv("RAG_EVAL_HOME", "some/where")
    assert Home.from_environment().root == tmp_path / "some" / "where"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAG_EVAL_HOME", "~/here")
    assert Home.from_environment().root == tmp_path / "here"
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_place_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_EVAL_HOME", "~no-such-user-here/x")
    with pytest.raises(ConfigurationError, match="RAG_EVAL_HOME '~no-such-user-here/x' is no usable path"):
        Home.from_environment()


def test_its_places_are_apart_and_inside(tmp_path: Path) -> None:
    home = Home(tmp_path)
    places = [home.tables, home.reports, home.spool, home.receipts, home.journals, home.cache, home.dagster]
    assert len({place.name for place in places}) == len(places)
    assert {place.parent for place in places} == {tmp_path}
