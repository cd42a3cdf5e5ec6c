"""Which texts are scorable, and the status of those that are not."""

from __future__ import annotations

import pytest

from rag_eval_assets.scoring.base import Pair
from rag_eval_assets.scoring.texts import classify, usable_references
from rag_eval_assets.status import ScoreStatus

UNSCORABLE = [
    pytest.param(None, ScoreStatus.NO_ANSWER, ScoreStatus.NO_REFERENCE, id="none"),
    pytest.param(float("nan"), ScoreStatus.NO_ANSWER, ScoreStatus.NO_REFERENCE, id="nan"),
    pytest.param(7, ScoreStatus.NO_ANSWER, ScoreStatus.NO_REFERENCE, id="number"),
    pytest.param("", ScoreStatus.EMPTY_ANSWER, ScoreStatus.EMPTY_REFERENCE, id="empty"),
    pytest.param(" \t\r\n", ScoreStatus.EMPTY_ANSWER, ScoreStatus.EMPTY_REFERENCE, id="blank"),
    pytest.param("\u00a0\u2003", ScoreStatus.EMPTY_ANSWER, ScoreStatus.EMPTY_REFERENCE, id="no-break-space"),
    pytest.param("half \ud83d an emoji", ScoreStatus.INVALID_TEXT, ScoreStatus.INVALID_TEXT, id="lone-surrogate"),
]


@pytest.mark.parametrize(("text", "as_candidate", "as_reference"), UNSCORABLE)
def test_a_text_that_is_none_has_a_status_on_either_side(
    text: str, as_candidate: ScoreStatus, as_reference: ScoreStatus
) -> None:
    assert classify(Pair(text, ("good",))) == as_candidate
    assert classify(Pair("good", (text,))) == as_reference
    assert classify(Pair(text, (text,))) == as_reference


def test_ordinary_and_odd_text_is_scorable() -> None:
    for text in ("word", "\nleading newline", "\U0001f600", "\u200b", "e\u0301", "0"):
        assert classify(Pair(text, (text,))) is None


def test_no_reference_at_all_is_no_reference() -> None:
    assert classify(Pair("good", ())) == ScoreStatus.NO_REFERENCE


def test_unusable_references_are_passed_over() -> None:
    pair = Pair("good", (None, "first", " ", "second", "\udc00"))
    assert classify(pair) is None
    assert usable_references(pair) == ("first", "second")


def test_where_no_reference_is_usable_the_first_ones_status_stands() -> None:
    assert classify(Pair("good", ("", None))) == ScoreStatus.EMPTY_REFERENCE
    assert classify(Pair("good", (None, ""))) == ScoreStatus.NO_REFERENCE
