"""What became of one row: the closed set of status words that the tables, the report and the checks share."""

from __future__ import annotations

from enum import StrEnum


class AnswerStatus(StrEnum):
    """What became of one question sent to the target (`generated_answers.status`)."""

    OK = "ok"
    """The target answered with text."""
    EMPTY = "empty"
    """The target answered with an empty or blank text, or with none."""
    INVALID_TEXT = "invalid_text"
    """The answer held lone surrogates; they are stored as U+FFFD and the answer is not scored."""
    ERROR = "error"
    """The call failed; `error` says how."""


class MatchStatus(StrEnum):
    """What became of one retrieval judgement (`retrieval_matches.status`)."""

    JUDGED = "judged"
    NO_CONTEXT = "no_context"
    """The example names no ground-truth context."""
    NO_PASSAGES = "no_passages"
    """The target does not say what it retrieved (an empty list is a judged miss)."""
    TARGET_ERROR = "target_error"


class ScoreStatus(StrEnum):
    """What became of one candidate and reference pair (`<scorer>.status`)."""

    SCORED = "scored"
    NO_REFERENCE = "no_reference"
    """The reference is None or NaN, or an empty list."""
    EMPTY_REFERENCE = "empty_reference"
    """The reference is empty or white space."""
    NO_ANSWER = "no_answer"
    """The candidate is None or NaN."""
    EMPTY_ANSWER = "empty_answer"
    """The candidate is empty or white space."""
    INVALID_TEXT = "invalid_text"
    """A text holds lone surrogates and so is no Unicode text."""
    UNTOKENIZABLE = "untokenizable"
    """A text holds characters but the model's tokenizer makes no token of them (zero-width spaces, say)."""
    INCOMPARABLE = "incomparable"
    """The embeddings of the two texts have no cosine: one has no direction, or their lengths differ."""
    TARGET_ERROR = "target_error"
    """There is no candidate since the call failed."""
    SCORER_ERROR = "scorer_error"
    """The scorer itself failed on this pair; `detail` says how."""
