"""Which texts can be scored at all: tells missing, blank and broken texts apart before any model sees them."""

from __future__ import annotations

from rag_eval_assets.canonical import is_unicode
from rag_eval_assets.scoring.base import Pair
from rag_eval_assets.status import ScoreStatus


def classify(pair: Pair) -> ScoreStatus | None:
    """Why `pair` cannot be scored, or None where it can be.

    The reference is looked at first: what the dataset lacks stays the same from run to run, whatever was answered. Of
    several references the unusable ones are passed over; where none is left, the first one's status stands.
    """
    if not pair.references:
        return ScoreStatus.NO_REFERENCE
    if not usable_references(pair):
        return _reference_status(pair.references[0])
    return _text_status(pair.candidate, ScoreStatus.NO_ANSWER, ScoreStatus.EMPTY_ANSWER)


def usable_references(pair: Pair) -> tuple[str, ...]:
    """The references that are scorable text, in order."""
    return tuple(text for text in pair.references if isinstance(text, str) and _reference_status(text) is None)


def _reference_status(text: object) -> ScoreStatus | None:
    return _text_status(text, ScoreStatus.NO_REFERENCE, ScoreStatus.EMPTY_REFERENCE)


def _text_status(text: object, missing: ScoreStatus, blank: ScoreStatus) -> ScoreStatus | None:
    # Data frames say "no text" with None, NaN or a null object of their own: whatever is no string is no text.
    if not isinstance(text, str):
        return missing
    if not text or text.isspace():
        return blank
    return None if is_unicode(text) else ScoreStatus.INVALID_TEXT
