"""Scores over caches on disk have the bits of scores without: warm, in part, damaged, or in a folder that is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.scoring.base import Pair, PairScore, Scorer, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.cache import LIMIT_VARIABLE, describe_events, open_caches, open_stores
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.resolve import ResolvedModel

PAIRS = [
    Pair("The bridge was finished in 1874.", ("They completed the bridge in 1874.",)),
    Pair("It opens at six.", ("The bakery opens at six in the morning.", "At six.")),
    Pair("Nobody knows.", ("The bakery opens at six in the morning.",)),
    Pair("", ("They completed the bridge in 1874.",)),
    Pair("\u200b", ("At six.",)),
    Pair("word " * 600, ("At six.",)),
]

Make = Callable[[Stores | None], Scorer]


@pytest.fixture(params=[BertScore, SentenceCosine], ids=["bertscore", "sentence_cosine"])
def make(request: pytest.FixtureRequest, minilm: ResolvedModel, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The scorer over some stores."""
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    return lambda stores: request.param(minilm, stores=stores)


@pytest.fixture
def expected(make: Make) -> list[PairScore]:
    return score(make(None))


def score(scorer: Scorer, pairs: list[Pair] = PAIRS) -> list[PairScore]:
    return scorer.score_pairs(pairs, no_advance)


def test_a_second_run_has_the_same_bits_and_asks_for_nothing_new(make: Make, expected, tmp_path: Path) -> None:
    caches = open_caches(tmp_path)
    assert score(make(caches.stores)) == expected
    caches.take_events()
    assert score(make(caches.stores)) == expected
    events = caches.take_events()
    assert events["scores"].hits == 5  # all but the empty one, which is no model's business
    assert sum(happened.misses for happened in events.values()) == 0
    assert events["vectors"].hits == events["tokens"].hits == 0


def test_what_is_cached_in_part_has_the_same_bits_in_any_order(make: Make, expected, tmp_path: Path) -> None:
    score(make(open_stores(tmp_path)), PAIRS[1:2])
    assert score(make(open_stores(tmp_path)), PAIRS[::-1]) == expected[::-1]


@pytest.mark.parametrize("name", ["scores", "embeddings"])
def test_damaged_entries_are_computed_again_and_said(make: Make, expected, name: str, tmp_path: Path) -> None:
    caches = open_caches(tmp_path)
    scorer = make(caches.stores)
    score(scorer)
    file = {"bertscore": "tokens", "sentence_cosine": "vectors"}[scorer.name] if name == "embeddings" else name
    with sqlite3.connect(tmp_path / f"{file}.sqlite") as connection:
        connection.execute("UPDATE entries SET value = zeroblob(size)")
    if name == "embeddings":
        caches.files["scores"].clear()
    caches.take_events()
    assert score(make(caches.stores)) == expected
    assert [line for line in describe_events(caches.take_events()) if "damaged" in line] != []
    assert score(make(caches.stores)) == expected
    assert describe_events(caches.take_events()) == []


def test_a_folder_that_cannot_be_used_costs_no_score(make: Make, expected, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    caches = open_caches(tmp_path / "taken" / "cache")
    assert score(make(caches.stores)) == expected
    assert any("the run goes on without it" in line for line in describe_events(caches.take_events()))


def test_caches_that_are_off_cost_no_score(
    make: Make, expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    assert score(make(open_stores(tmp_path / "cache"))) == expected
    assert not (tmp_path / "cache").exists()


def test_a_status_is_cached_as_it_is(make: Make, tmp_path: Path) -> None:
    score(make(open_stores(tmp_path)))
    again = score(make(open_stores(tmp_path)))
    assert [row.status for row in again[3:5]] == [ScoreStatus.EMPTY_ANSWER, ScoreStatus.UNTOKENIZABLE]
    assert again[4].detail is not None
    assert again[5].truncated
