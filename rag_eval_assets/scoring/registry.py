"""The scorers by name: what suites, assets and the Python interface choose from. Imports no model library."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring import bertscore, sentence_cosine
from rag_eval_assets.scoring.base import Scorer
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.tables import BERTSCORE, SENTENCE_COSINE, TableSpec
from rag_eval_assets.weights.registry import REGISTRY
from rag_eval_assets.weights.resolve import ResolvedModel, resolve


@dataclass(frozen=True)
class ScorerEntry:
    """One scorer before it has a model: all that an asset's definition needs.

    Attributes:
        name: name of the scorer and of its asset.
        spec: the table of its scores.
        code_version: version of the code that computes them.
        default_model: id of the model that is used where nobody names one.
        options: names of the options that `factory` takes, each with its type.
        factory: makes the scorer from a resolved model and options.
    """

    name: str
    spec: TableSpec
    code_version: str
    default_model: str
    options: Mapping[str, type]
    factory: Callable[..., Scorer]


SCORERS: dict[str, ScorerEntry] = {
    "bertscore": ScorerEntry(
        name="bertscore",
        spec=BERTSCORE,
        code_version=bertscore.CODE_VERSION,
        default_model="bert-base-uncased",
        options={"layer": int, "rescale_with_baseline": bool, "idf": bool, "precision": str, "engine": str},
        factory=bertscore.BertScore,
    ),
    "sentence_cosine": ScorerEntry(
        name="sentence_cosine",
        spec=SENTENCE_COSINE,
        code_version=sentence_cosine.CODE_VERSION,
        default_model="all-MiniLM-L6-v2",
        options={"precision": str, "engine": str},
        factory=sentence_cosine.SentenceCosine,
    ),
}
"""Every scorer by name."""

DEFAULT_MODELS: dict[str, str] = {name: entry.default_model for name, entry in SCORERS.items()}
"""The model of each scorer where nobody names one. It is never replaced by another one silently."""


def scorer_entry(name: str) -> ScorerEntry:
    """The entry of the scorer `name`.

    Raises:
        ConfigurationError: there is no such scorer; the nearest name is proposed.
    """
    if name not in SCORERS:
        raise ConfigurationError(f"Unknown scorer {name!r}", fix=f"{nearest(name, SCORERS)}Scorers: {_listed(SCORERS)}")
    return SCORERS[name]


def build_scorer(
    name: str,
    model_id: str | None = None,
    *,
    folder: Path | None = None,
    allow_download: bool = True,
    options: Mapping[str, Any] | None = None,
    stores: Stores | None = None,
) -> Scorer:
    """Make the scorer `name`, its model found and checked but not yet loaded.

    Args:
        name: a name of `SCORERS`.
        model_id: an id of the weights registry; the scorer's default model where it is None.
        folder: folder with the model's files; searched for where it is None.
        allow_download: whether the model may be downloaded where it is not on this machine.
        options: options of the scorer: `precision` and `engine`; bertscore also knows `layer`, `idf` and
            `rescale_with_baseline`.
        stores: where scores and vectors are looked up and kept; nowhere by default.

    Raises:
        ConfigurationError: scorer, model or option is unknown, an option has a wrong type, or the model is not
            available.
    """
    entry = scorer_entry(name)
    given = dict(options or {})
    for option, value in given.items():
        _check_option(entry, option, value)
    model = _default_or(model_id, entry, folder, allow_download)
    return entry.factory(model, stores=stores, **given)


def _default_or(model_id: str | None, entry: ScorerEntry, folder: Path | None, allow_download: bool) -> ResolvedModel:
    if model_id is not None:
        return resolve(model_id, folder=folder, allow_download=allow_download)
    try:
        return resolve(entry.default_model, folder=folder, allow_download=allow_download)
    except ConfigurationError as error:
        others = _listed(name for name in REGISTRY if name != entry.default_model)
        fix = f"{error.fix}. Or name another model for {entry.name} ({others}): its scores are other numbers"
        raise ConfigurationError(error.message, fix=fix) from error


def _check_option(entry: ScorerEntry, option: str, value: object) -> None:
    if option not in entry.options:
        listed = f"Options: {_listed(entry.options)}"
        raise ConfigurationError(
            f"Unknown option {option!r} of scorer {entry.name!r}", fix=f"{nearest(option, entry.options)}{listed}"
        )
    # Exact types: True is an int to Python, and no layer.
    if value is not None and type(value) is not entry.options[option]:
        raise ConfigurationError(
            f"{entry.name}.{option} is {value!r}", fix=f"Give a value of type {entry.options[option].__name__}"
        )


def nearest(name: str, names: Iterable[str]) -> str:
    """A question that proposes the name nearest to `name`, with a space after it; empty where none is near."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"Did you mean {near[0]!r}? " if near else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
