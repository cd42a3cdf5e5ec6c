"""Which part of a suite each table was made with, as a hash: a table made with another one is out of date."""

from __future__ import annotations

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import GENERATED_ANSWERS, RETRIEVAL_MATCHES

FACT = "configuration"
"""Key of the hash in a table's provenance."""


def configuration_hash(suite: LoadedSuite, table: str, target: str) -> str:
    """Hash of the settings that `generated_answers`, `retrieval_matches` or a scorer's table depends on."""
    content = suite.suite
    if table == GENERATED_ANSWERS.name:
        return content_hash(content.targets[target].settings())
    if table == RETRIEVAL_MATCHES.name:
        return content_hash(content.retrieval.model_dump(mode="json"))
    scorer = next(scorer for scorer in content.scorers if scorer.name == table)
    return content_hash(scorer.settings())


def code_version(base: str, suite: LoadedSuite, table: str, target: str) -> str:
    """Code version of an asset: that of its function, and of its settings, so that a changed suite makes it stale."""
    return f"{base}-{configuration_hash(suite, table, target)[:8]}"
