"""A pair's score depends on that pair alone: not on its neighbours, their order, bad rows or the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_eval_assets.scoring.base import Pair, PairScore, Scorer, no_advance
from rag_eval_assets.scoring.registry import build_scorer
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.weights.resolve import ResolvedModel

ROOT = Path(__file__).parents[2]

GOOD = [
    Pair("The library opens at nine.", ("The library opens at 9 a.m.",)),
    Pair("not enough information", ("The bridge was built in 1887.",)),
    Pair("word " * 60, ("A much shorter reference.",)),
    Pair("short", ("word " * 60,)),
    Pair("not enough information", ("It depends on the season.", "Nobody knows.")),
    Pair("It depends on the season.", ("not enough information",)),
    Pair("\nBecause the river floods.", ("The river floods, which is why the houses stand on stilts.",)),
]

BAD = [
    pytest.param(None, ScoreStatus.NO_ANSWER, ScoreStatus.NO_REFERENCE, id="none"),
    pytest.param(float("nan"), ScoreStatus.NO_ANSWER, ScoreStatus.NO_REFERENCE, id="nan"),
    pytest.param("", ScoreStatus.EMPTY_ANSWER, ScoreStatus.EMPTY_REFERENCE, id="empty"),
    pytest.param(" \n", ScoreStatus.EMPTY_ANSWER, ScoreStatus.EMPTY_REFERENCE, id="blank"),
    pytest.param("\u00a0", ScoreStatus.EMPTY_ANSWER, ScoreStatus.EMPTY_REFERENCE, id="no-break-space"),
    pytest.param("x \udc80", ScoreStatus.INVALID_TEXT, ScoreStatus.INVALID_TEXT, id="lone-surrogate"),
    pytest.param("\u200b\u200b", ScoreStatus.UNTOKENIZABLE, ScoreStatus.UNTOKENIZABLE, id="zero-width-space"),
    pytest.param("\x00\x07\x1b", ScoreStatus.UNTOKENIZABLE, ScoreStatus.UNTOKENIZABLE, id="control-characters"),
]


@pytest.fixture(scope="module", params=["bertscore", "sentence_cosine"])
def scorer(request: pytest.FixtureRequest, minilm: ResolvedModel) -> Scorer:
    return build_scorer(request.param, "all-MiniLM-L6-v2", folder=minilm.path)


@pytest.fixture(scope="module")
def alone(scorer: Scorer) -> list[PairScore]:
    """Each good pair scored in a call of its own."""
    scores = [scorer.score_pairs([pair], no_advance)[0] for pair in GOOD]
    assert {entry.status for entry in scores} == {ScoreStatus.SCORED}
    return scores


def test_scores_are_the_same_to_the_last_bit_together_reversed_and_across_blocks(
    scorer: Scorer, alone: list[PairScore]
) -> None:
    assert scorer.score_pairs(GOOD, no_advance) == alone
    assert scorer.score_pairs(GOOD[::-1], no_advance) == alone[::-1]
    # One more pair in front of each round moves the pairs to other places in their blocks.
    rounds = 40
    many = scorer.score_pairs([GOOD[0], *GOOD] * rounds, no_advance)
    assert many == [alone[0], *alone] * rounds


@pytest.mark.parametrize(("text", "as_candidate", "as_reference"), BAD)
def test_an_unscorable_text_gets_its_status_and_leaves_its_neighbours_alone(
    scorer: Scorer, alone: list[PairScore], text: str, as_candidate: ScoreStatus, as_reference: ScoreStatus
) -> None:
    pairs = [GOOD[0], Pair(text, ("good",)), GOOD[1], Pair("good", (text,)), GOOD[3], Pair(text, (text,))]
    scores = scorer.score_pairs(pairs, no_advance)
    assert [scores[index].status for index in (1, 3, 5)] == [as_candidate, as_reference, as_reference]
    assert [scores[index].values for index in (1, 3, 5)] == [None] * 3
    assert [scores[index] for index in (0, 2, 4)] == [alone[0], alone[1], alone[3]]


def test_an_empty_list_of_references_is_no_reference(scorer: Scorer, alone: list[PairScore]) -> None:
    scores = scorer.score_pairs([Pair("good", ()), GOOD[0]], no_advance)
    assert (scores[0].status, scores[1]) == (ScoreStatus.NO_REFERENCE, alone[0])


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_moves_no_bit_and_is_left_as_it_was(
    scorer: Scorer, alone: list[PairScore], threads: int
) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert scorer.score_pairs(GOOD, no_advance) == alone
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_another_process_with_another_string_hashing_gives_the_same_bits_and_prints_nothing(
    scorer: Scorer, alone: list[PairScore], minilm: ResolvedModel
) -> None:
    pairs = [(pair.candidate, pair.references) for pair in GOOD[::-1]]
    code = f"""
import json, pathlib
from rag_eval_assets.scoring.base import Pair, no_advance
from rag_eval_assets.scoring.registry import build_scorer
scorer = build_scorer({scorer.name!r}, "all-MiniLM-L6-v2", folder=pathlib.Path({str(minilm.path)!r}))
scores = scorer.score_pairs([Pair(*pair) for pair in {pairs!r}], no_advance)
print(json.dumps([entry.values for entry in scores]))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "20250101", "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == [entry.values for entry in alone[::-1]]
