"""From a target's configuration to the target itself."""

from __future__ import annotations

from pathlib import Path

from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.targets.base import Target
from rag_eval_assets.targets.embedded import EmbeddedPipeline
from rag_eval_assets.weights.resolve import resolve


def open_target(suite: LoadedSuite, name: str, documents: DocumentSet, cache: Path) -> Target:
    """The target `name` of a suite, not yet prepared.

    Args:
        suite: the suite.
        name: a key of its `targets`.
        documents: the corpus, for targets that retrieve here.
        cache: folder for what may be kept between runs.

    Raises:
        ConfigurationError: the target's model is missing or not the pinned one.
    """
    config = suite.suite.targets[name]
    model = resolve(config.model, folder=suite.model_folder(config.model))
    return EmbeddedPipeline(config, documents, model, cache)


def target_models(suite: LoadedSuite, name: str) -> list[str]:
    """Ids of the models that the target `name` loads in this process."""
    return [suite.suite.targets[name].model]
