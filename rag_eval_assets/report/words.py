"""The status words of tables and reports as a person would say them; the words themselves stand in `status`."""

from __future__ import annotations

from rag_eval_assets.report.schema import Report
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


def remarks(report: Report) -> list[str]:
    """What a reader must know to judge the numbers: the report's notes, and how its answers came about.

    The latter is no part of a report's content, which is the same whether an answer was recorded or replayed.
    """
    found = list(report.notes)
    days = report.measured_at.days_after_run_date
    if days is not None and days > 1:
        found.append(f"answers were generated {days} days after the run date; they measure that day's system")
    calls = report.run.calls
    if calls.replayed:
        found.append(
            f"{calls.replayed} of {report.counts.attempted} answers were replayed from recordings, and the target was "
            "not asked for them; --cache live asks it again"
        )
    return found
