"""When a changed corpus leads to a run: not on the first look, not before it has settled, once per change."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_assets.automation.settle import Seen, look, run_key

SETTLE = 30.0


@dataclass
class Corpus:
    """A corpus that is looked at every so often."""

    settle: float = SETTLE
    seen: Seen | None = None
    runs: list[int] = field(default_factory=list[int])
    whys: list[str] = field(default_factory=list[str])

    def look(self, version: str, now: float) -> None:
        decision = look(self.seen, version, now=now, settle_seconds=self.settle)
        self.seen = Seen.from_cursor(decision.seen.to_cursor())
        self.whys.append(decision.why)
        if decision.due:
            self.runs.append(decision.seen.generation)


def test_the_first_look_only_records() -> None:
    corpus = Corpus()
    corpus.look("a", 0)
    corpus.look("a", 60)
    assert corpus.runs == []
    assert corpus.whys == ["first look: the corpus is at a; nothing to compare with", "unchanged at a"]


def test_one_change_gives_one_run_within_two_looks() -> None:
    corpus = Corpus()
    for now, version in ((0, "a"), (60, "b"), (120, "b"), (180, "b")):
        corpus.look(version, now)
    assert corpus.runs == [1]
    assert corpus.whys[1:] == [
        "changed from a to b; a run follows if it stays so for 30 s",
        "changed from a to b and stayed so; generation 1",
        "unchanged at b",
    ]


def test_an_upload_in_progress_gives_one_run_after_it() -> None:
    corpus = Corpus()
    corpus.look("a", 0)
    for second in range(1, 21):
        corpus.look(f"part {second}", second / 2)
    assert corpus.runs == []
    corpus.look("part 20", 25)
    assert corpus.runs == [], "15 s are not 30"
    corpus.look("part 20", 40)
    corpus.look("part 20", 70)
    assert corpus.runs == [1]


def test_going_back_and_forth_is_a_change_each_time() -> None:
    corpus = Corpus()
    for number, version in enumerate("ABAB"):
        corpus.look(version, number * 100)
        corpus.look(version, number * 100 + 50)
    assert corpus.runs == [1, 2, 3]
    day = dt.date(2026, 3, 1)
    assert len({run_key("tiny", day, generation) for generation in corpus.runs}) == 3


def test_a_change_that_is_taken_back_before_it_settled_is_none() -> None:
    corpus = Corpus()
    for now, version in ((0, "a"), (60, "b"), (70, "a"), (80, "b"), (100, "b")):
        corpus.look(version, now)
    assert corpus.runs == [], "b was away in between, and has stayed for 20 s only"
    assert corpus.whys[2] == "back at a before the change had settled"
    corpus.look("b", 110)
    assert corpus.runs == [1]


def test_without_a_time_to_settle_the_first_sight_counts() -> None:
    corpus = Corpus(settle=0)
    corpus.look("a", 0)
    corpus.look("b", 1)
    assert corpus.runs == [1]


def test_a_clock_that_was_set_back_starts_the_wait_again() -> None:
    corpus = Corpus()
    for now, version in ((1000, "a"), (1010, "b"), (10, "b"), (20, "b")):
        corpus.look(version, now)
    assert corpus.runs == []
    corpus.look("b", 40)
    assert corpus.runs == [1]


def test_a_first_look_after_the_memory_was_lost_counts_on() -> None:
    decision = look(None, "a", now=0, settle_seconds=0, generation=7)
    assert look(decision.seen, "b", now=1, settle_seconds=0).seen.generation == 8


@pytest.mark.parametrize("cursor", [None, "", "null", "[]", "12", "{}", "not json", '{"fingerprint": "a"}'])
def test_what_is_no_cursor_is_a_first_look(cursor: str | None) -> None:
    assert Seen.from_cursor(cursor) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.1, 100)), max_size=30))
def test_runs_are_as_many_as_settled_changes_and_each_is_about_the_version_seen(looks: list[tuple[str, float]]) -> None:
    """Told again from the looks alone: a version is accepted once its unbroken sight is long enough."""
    corpus, now, expected, current = Corpus(), 0.0, 0, None
    first_sight: tuple[str, float] | None = None
    for version, pause in looks:
        now += pause
        corpus.look(version, now)
        if current is None or version == current:
            current, first_sight = version, None
        elif first_sight is None or first_sight[0] != version:
            first_sight = (version, now)
        elif now - first_sight[1] >= SETTLE:
            expected, current, first_sight = expected + 1, version, None
    assert corpus.runs == list(range(1, expected + 1))
    assert corpus.seen is None or corpus.seen.fingerprint == current
