"""Run tags that say what a run is about and what started it."""

from __future__ import annotations

from rag_eval_assets.suite.load import LoadedSuite

SUITE_TAG = "rag_eval/suite"
SUITE_HASH_TAG = "rag_eval/suite_sha256"
TRIGGER_TAG = "rag_eval/trigger"
"""`schedule` or `corpus`; runs that a person or a backfill started have none."""
CORPUS_GENERATION_TAG = "rag_eval/corpus_generation"
WHY_TAG = "rag_eval/why"
"""What a sensor saw, in one sentence."""


def suite_tags(suite: LoadedSuite) -> dict[str, str]:
    """Run tags that say which suite was evaluated, and in which version of its file."""
    return {SUITE_TAG: suite.slug[:63], SUITE_HASH_TAG: suite.sha256[:16]}


def notified_tags(suite: LoadedSuite, digest: str | None, outcome: str) -> dict[str, str]:
    """Run tags about the message on a failed run: `sent`, `repeated` or `too_many`, and of which failure.

    The keys name the suite, since one run may be about several.
    """
    outcome_tag = {f"rag_eval.notified/{suite.slug[:63]}": outcome}
    return outcome_tag if digest is None else {**outcome_tag, f"rag_eval.failure/{suite.slug[:63]}": digest}
