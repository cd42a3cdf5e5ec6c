"""What a suite needs on this machine, looked at before anything is spent or written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.destination import destination, ready
from rag_eval_assets.evaluation.journals import journals_place
from rag_eval_assets.settings import Settings
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.scorers import LocalScorer
from rag_eval_assets.targets.registry import target_models
from rag_eval_assets.weights.resolve import resolve
from rag_eval_assets.wording import counted


@dataclass(frozen=True)
class Need:
    """One thing that a suite needs: what it is, what was found, or what is wrong with it."""

    name: str
    found: str | None
    problem: ConfigurationError | None


def needs(suite: LoadedSuite, *, allow_download: bool = True, offline: bool = False) -> list[Need]:
    """Look at everything that a suite needs: examples, corpus, models, the reports' bucket. Writes nothing of its own.

    Args:
        suite: the suite.
        allow_download: whether missing models may be downloaded into the hub's cache.
        offline: the hub is asked for nothing, whatever is missing.
    """
    found = [
        _look("examples", lambda: _examples(suite, offline=offline)),
        _look("corpus", lambda: counted(len(load_corpus(suite, offline=offline).documents), "document")),
    ]
    models = model_needs(suite, allow_download=allow_download and not offline)
    return [*found, *models, *setting_needs(suite)]


def model_needs(suite: LoadedSuite, *, allow_download: bool = True) -> list[Need]:
    """Look at the models alone: each is found and its hash checked."""

    def locate(model_id: str) -> str:
        model = resolve(model_id, folder=suite.model_folder(model_id), allow_download=allow_download)
        return f"{model.pin.repo_id} at {model.pin.revision} ({model.source})"

    return [_look(f"model {model_id}", lambda model_id=model_id: locate(model_id)) for model_id in _model_ids(suite)]


def setting_needs(suite: LoadedSuite) -> list[Need]:
    """Look at the settings of the reports' bucket and of the journal; nothing of what stays in the local folder."""
    try:
        settings = Settings.from_environment()
    except ConfigurationError as error:
        return [Need("settings", None, error)]
    journal = [] if settings.journal == "local" else [_look("journal", lambda: journals_place(settings))]
    try:
        local = destination(suite).bucket is None
    except ConfigurationError as error:
        return [Need("reports", None, error), *journal]
    return [*([] if local else [_look("reports", lambda: ready(suite))]), *journal]


def require(found: list[Need]) -> None:
    """Raise the first problem."""
    for need in found:
        if need.problem is not None:
            raise need.problem


def _look(name: str, look: Callable[[], str]) -> Need:
    try:
        return Need(name, look(), None)
    except ConfigurationError as error:
        return Need(name, None, error)


def _examples(suite: LoadedSuite, *, offline: bool) -> str:
    examples = load_examples(suite, offline=offline)
    excluded = f", {counted(len(examples.excluded), 'row')} excluded" if examples.excluded else ""
    return f"{counted(examples.total, 'example')} of {examples.name}{excluded}"


def _model_ids(suite: LoadedSuite) -> list[str]:
    of_targets = [model for name in suite.suite.targets for model in target_models(suite, name)]
    of_scorers = [scorer.model for scorer in suite.suite.scorers if isinstance(scorer, LocalScorer)]
    return list(dict.fromkeys([*of_targets, *of_scorers]))
