"""What becomes of pairs when a model fails on one of them, with a small engine that fails on purpose."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from rag_eval_assets.errors import describe_error
from rag_eval_assets.scoring.base import Pair, PairScore, no_advance
from rag_eval_assets.scoring.blocks import WINDOW_PAIRS, ReadyPair, score_in_blocks
from rag_eval_assets.status import ScoreStatus


class WordEngine:
    """Scores the share of the candidate's words; sees four words; fails on certain words."""

    most_tokens = 4

    def __init__(self) -> None:
        self.calls: list[int] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if any("uncountable" in text for text in texts):
            raise OverflowError("int too big to convert")
        return [len([word for word in text.split() if word != "void"]) for text in texts]

    def compute(self, pairs: Sequence[ReadyPair]) -> Iterator[tuple[int, dict[str, float]]]:
        """Longest candidates first, as engines do; what came before a failure counts."""
        self.calls.append(len(pairs))
        for place, pair in sorted(enumerate(pairs), key=lambda item: -len(item[1].candidate)):
            if "boom" in pair.candidate:
                raise RuntimeError("cannot open /home/somebody/models/model.safetensors\nand more")
            yield place, {"share": math.nan if "nan" in pair.candidate else 1 / len(pair.candidate.split())}


def score(*candidates: str | None, reference: str = "a b") -> list[PairScore]:
    engine = WordEngine()
    return score_in_blocks(lambda: engine, [Pair(candidate, (reference,)) for candidate in candidates], no_advance)


def test_a_pair_that_fails_costs_its_neighbours_nothing() -> None:
    alone = score("a b", "c d e")
    assert [entry.values for entry in alone] == [{"share": 1 / 2}, {"share": 1 / 3}]
    among = score("a b", "boom", "c d e")
    assert [among[0], among[2]] == alone
    assert among[1].status == ScoreStatus.SCORER_ERROR
    assert among[1].values is None


def test_an_error_tells_type_and_first_line_but_no_path() -> None:
    (entry,) = score("boom")
    assert entry.detail == "RuntimeError: cannot open <path>"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", "ValueError"),
        (r"no C:\Users\somebody\model", "ValueError: no <path>"),
        ("shape 3/4 and/or more", "ValueError: shape 3/4 and/or more"),
    ],
)
def test_errors_are_told_without_paths_and_with_their_fractions(message: str, told: str) -> None:
    assert describe_error(ValueError(message)) == told


def test_an_error_is_told_in_bounded_length() -> None:
    assert len(describe_error(ValueError("x" * 10_000))) == 300


def test_a_value_that_is_no_number_is_an_error_of_that_pair() -> None:
    first, second = score("nan", "a")
    assert (first.status, first.values, first.detail) == (
        ScoreStatus.SCORER_ERROR,
        None,
        "not a finite number: share",
    )
    assert second.status == ScoreStatus.SCORED


def test_a_tokenizer_that_fails_on_a_text_is_an_error_of_that_pair() -> None:
    first, second = score("uncountable", "a")
    assert (first.status, first.detail) == (ScoreStatus.SCORER_ERROR, "OverflowError: int too big to convert")
    assert second.status == ScoreStatus.SCORED


def test_texts_without_tokens_are_untokenizable_and_say_which_side() -> None:
    assert score("void") == [PairScore(ScoreStatus.UNTOKENIZABLE, detail="the candidate holds no token")]
    assert score("a", reference="void") == [PairScore(ScoreStatus.UNTOKENIZABLE, detail="the reference holds no token")]


def test_a_text_longer_than_the_model_sees_is_scored_and_marked() -> None:
    assert [(entry.status, entry.truncated) for entry in score("a b c d", "a b c d e")] == [
        (ScoreStatus.SCORED, False),
        (ScoreStatus.SCORED, True),
    ]
    assert score("a", reference="a b c d e")[0].truncated


def test_progress_counts_every_pair_once_and_blocks_are_bounded() -> None:
    engine = WordEngine()
    told: list[int] = []
    pairs = [Pair("a" if number % 3 else None, ("b",)) for number in range(2 * WINDOW_PAIRS + 1)]
    results = score_in_blocks(lambda: engine, pairs, told.append)
    assert len(results) == len(pairs)
    assert sum(told) == len(pairs)
    assert max(engine.calls) <= WINDOW_PAIRS


def test_no_model_is_loaded_where_nothing_can_be_scored() -> None:
    def load() -> WordEngine:
        raise AssertionError("loaded")

    results = score_in_blocks(load, [Pair(None, ("a",)), Pair("a", ("",))], no_advance)
    assert [entry.status for entry in results] == [ScoreStatus.NO_ANSWER, ScoreStatus.EMPTY_REFERENCE]


def test_order_is_kept_across_blocks() -> None:
    lengths = [1 + number % 7 for number in range(WINDOW_PAIRS + 5)]
    results = score(*[" ".join("a" * length) for length in lengths])
    assert [entry.values for entry in results] == [{"share": 1 / length} for length in lengths]
    assert any(left.values != right.values for left, right in pairwise(results))
