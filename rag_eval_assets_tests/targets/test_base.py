"""What the journal keeps of an answer is the answer."""

from __future__ import annotations

import json

import pytest

from rag_eval_assets.targets.base import Answer, Passage


@pytest.mark.parametrize(
    "answer",
    [
        Answer(None),
        Answer("", ()),
        Answer("text \ud83d", (Passage("p", "d", "text", 0.5), Passage()), "some-model", 10, 20, 0.001, 3),
    ],
)
def test_an_answer_comes_back_from_json(answer: Answer) -> None:
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer
