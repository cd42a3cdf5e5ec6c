"""The status words of tables and reports as a person would say them; the words themselves stand in `status`."""

from __future__ import annotations

from rag_eval_assets.status import AnswerStatus, MatchStatus, ScoreStatus

EXAMPLE = {
    "ok": "answered, scored, and judged for retrieval",
    "no_context": "answered and scored; without a context, retrieval cannot be judged",
    "no_reference": "answered; without a reference answer there is nothing to score against",
    AnswerStatus.EMPTY.value: "the answer is blank",
    AnswerStatus.INVALID_TEXT.value: "the answer is no valid Unicode text, so it is not scored",
    AnswerStatus.ERROR.value: "the call failed",
}
"""What became of one example."""

RETRIEVAL = {
    MatchStatus.NO_CONTEXT.value: "not judged: the expected context is not known",
    MatchStatus.NO_PASSAGES.value: "not judged: the target does not say what it retrieved",
    MatchStatus.TARGET_ERROR.value: "not judged: the call failed",
}
"""Why retrieval was not judged."""

SCORE = {
    ScoreStatus.NO_REFERENCE.value: "not scored: there is no reference answer",
    ScoreStatus.EMPTY_REFERENCE.value: "not scored: the reference answer is blank",
    ScoreStatus.NO_ANSWER.value: "not scored: there is no answer",
    ScoreStatus.EMPTY_ANSWER.value: "not scored: the answer is blank",
    ScoreStatus.INVALID_TEXT.value: "not scored: a text is no valid Unicode",
    ScoreStatus.UNTOKENIZABLE.value: "not scored: the model makes nothing of a text",
    ScoreStatus.INCOMPARABLE.value: "scored 0: the embeddings of the texts have no cosine",
    ScoreStatus.TARGET_ERROR.value: "not scored: the call failed",
    ScoreStatus.SCORER_ERROR.value: "not scored: the scorer failed",
}
"""Why a scorer gave no score."""
