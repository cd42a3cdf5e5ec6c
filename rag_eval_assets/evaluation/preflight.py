"""What a suite needs on this machine, looked at before anything is spent or written."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError, UnavailableError
from rag_eval_assets.evaluation.destination import destination, ready
from rag_eval_assets.evaluation.journals import journals_place
from rag_eval_assets.recording.secrets import secret_value
from rag_eval_assets.settings import Settings
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.scorers import LocalScorer, Similarity
from rag_eval_assets.suite.targets import FromEnvironment, HttpTarget, OpenAICompatibleTarget
from rag_eval_assets.targets.registry import target_models
from rag_eval_assets.weights.hub import SUITE
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
        _look(suite, "examples", lambda: _examples(suite, offline=offline)),
        _look(suite, "corpus", lambda: _documents(suite, offline=offline)),
    ]
    models = model_needs(suite, allow_download=allow_download and not offline)
    return [*found, *models, *setting_needs(suite)]


def model_needs(suite: LoadedSuite, *, allow_download: bool = True) -> list[Need]:
    """Look at the models alone: each is found and its hash checked."""

    def locate(model_id: str) -> str:
        model = resolve(model_id, folder=suite.model_folder(model_id), allow_download=allow_download)
        return f"{model.pin.repo_id} at {model.pin.revision} ({model.source})"

    return [
        _look(suite, f"model {model_id}", lambda model_id=model_id: locate(model_id)) for model_id in _model_ids(suite)
    ]


def variable_needs(suite: LoadedSuite) -> list[Need]:
    """Look at the environment variables that calls read. No part of `needs`: replayed calls do without them."""

    def read(variable: str) -> str:
        where = " and ".join(named[variable])
        if secret_value(variable) is None:
            raise UnavailableError(f"not set; {where} reads it for every call that is not replayed")
        return f"set, for {where}"

    named: dict[str, list[str]] = {}
    for variable, where in _variables(suite):
        named.setdefault(variable, []).append(where)
    return [_look(suite, f"variable {variable}", lambda variable=variable: read(variable)) for variable in named]


def setting_needs(suite: LoadedSuite) -> list[Need]:
    """Look at the settings of the reports' bucket and of the journal; nothing of what stays in the local folder."""
    try:
        settings = Settings.from_environment()
    except ConfigurationError as error:
        return [Need("settings", None, error)]
    journal = [] if settings.journal == "local" else [_look(suite, "journal", lambda: journals_place(settings))]
    try:
        local = destination(suite).bucket is None
    except ConfigurationError as error:
        return [Need("reports", None, error), *journal]
    return [*([] if local else [_look(suite, "reports", lambda: ready(suite))]), *journal]


def require(found: list[Need], suite: LoadedSuite) -> None:
    """Raise the first problem, which then names what else is not as it has to be."""
    problems: dict[str, tuple[str, ConfigurationError]] = {}
    for need in found:
        if need.problem is not None:  # one file may be missing for several needs
            problems.setdefault(str(need.problem), (need.name, need.problem))
    if not problems:
        return
    (_, first), *others = problems.values()
    if others:
        names = ", ".join(name for name, _ in others)
        more = f"Not there or not usable either: {names} (`rag-eval validate {shlex.quote(suite.argument)}` says why)"
        first.fix = f"{first.fix}. {more}" if first.fix else more
    raise first


def _look(suite: LoadedSuite, name: str, look: Callable[[], str]) -> Need:
    try:
        return Need(name, look(), None)
    except ConfigurationError as error:
        if error.fix is not None:
            error.fix = error.fix.replace(f" {SUITE} ", f" {shlex.quote(suite.argument)} ")
        return Need(name, None, error)


def _documents(suite: LoadedSuite, *, offline: bool) -> str:
    if suite.suite.corpus is None:
        return "none; passages come from the target"
    return counted(len(load_corpus(suite, offline=offline).documents), "document")


def _variables(suite: LoadedSuite) -> Iterator[tuple[str, str]]:
    """Every environment variable that a call reads, with the part of the suite that names it."""
    for name, target in suite.suite.targets.items():
        if isinstance(target, HttpTarget):
            values = [value for value in target.headers.values() if isinstance(value, FromEnvironment)]
            yield from ((value.env, f"target {name}") for value in values)
        elif isinstance(target, OpenAICompatibleTarget) and target.api_key_env is not None:
            yield target.api_key_env, f"target {name}"
    for scorer in suite.suite.scorers:
        if isinstance(scorer, Similarity) and scorer.api_key_env is not None:
            yield scorer.api_key_env, f"scorer {scorer.name}"


def _examples(suite: LoadedSuite, *, offline: bool) -> str:
    examples = load_examples(suite, offline=offline)
    excluded = f", {counted(len(examples.excluded), 'row')} excluded" if examples.excluded else ""
    return "; ".join([f"{counted(examples.total, 'example')} of {examples.name}{excluded}", *examples.gaps()])


def _model_ids(suite: LoadedSuite) -> list[str]:
    of_targets = [model for name in suite.suite.targets for model in target_models(suite, name)]
    of_scorers = [scorer.model for scorer in suite.suite.scorers if isinstance(scorer, LocalScorer)]
    return list(dict.fromkeys([*of_targets, *of_scorers]))
