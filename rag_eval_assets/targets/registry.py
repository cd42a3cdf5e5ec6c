"""From a target's configuration to the target itself."""

from __future__ import annotations

from pathlib import Path

from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.recording.channel import Channel
from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.targets import EmbeddedTarget, HttpTarget, ShellTarget
from rag_eval_assets.targets.base import Target
from rag_eval_assets.weights.resolve import resolve


def open_target(
    suite: LoadedSuite, name: str, documents: DocumentSet, cache: Path, channel: Channel | None = None
) -> Target:
    """The target `name` of a suite, not yet prepared.

    Args:
        suite: the suite.
        name: a key of its `targets`.
        documents: the corpus, for targets that retrieve here.
        cache: folder for what may be kept between runs.
        channel: recordings of calls, for targets that are called; without one every call is made.

    Raises:
        ConfigurationError: the target's model is missing or not the pinned one.
    """
    config = suite.suite.targets[name]
    if isinstance(config, EmbeddedTarget):
        from rag_eval_assets.targets.embedded import EmbeddedPipeline

        model = resolve(config.model, folder=suite.model_folder(config.model))
        return EmbeddedPipeline(config, documents, model, cache)
    if isinstance(config, ShellTarget):
        from rag_eval_assets.targets.shell import ShellPipeline

        return ShellPipeline(config, suite.path.parent)
    calls = channel or Channel("target", Mode.OFF, None, folder=cache, record_with="")
    if isinstance(config, HttpTarget):
        from rag_eval_assets.targets.http import HttpPipeline

        return HttpPipeline(config, calls, suite.suite.run.concurrency)
    from rag_eval_assets.targets.openai_compatible import ChatPipeline

    return ChatPipeline(config, calls, suite.suite.run.concurrency)


def target_models(suite: LoadedSuite, name: str) -> list[str]:
    """Ids of the models that the target `name` loads in this process."""
    config = suite.suite.targets[name]
    return [config.model] if isinstance(config, EmbeddedTarget) else []
