"""Names of suites and targets, and the slugs that stand for them in asset keys, folders and job names."""

from __future__ import annotations

import re

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.tables import TABLES

BUILT_IN_ASSETS = frozenset({*TABLES, "eval_report", "approved_report", "target_comparison"})
"""Names that a suite's target may not have: `<suite>/<name>` is already an asset."""

RESERVED_SCORER_NAMES = frozenset(
    {*BUILT_IN_ASSETS, "retrieval", "question", "answer", "status", "error", "generator", "context", "passages"}
    | {"rank", "matched", "top_k_match", "models", "sentence_transformer"}
)
"""Names that no further scorer may take: tables, and what stands beside its scores in reports."""

MAX_SLUG = 100
"""Folders and Dagster's names of steps take longer ones, but not together."""

SAMPLE_SUFFIX = "~sample"
"""Limited runs are stored under `<suite>~sample`; no slug can hold a tilde, so nothing can collide with it."""


def slug(name: str, *, what: str) -> str:
    """`name` as `[a-z0-9_]`: lower case, every run of other characters becomes one underscore.

    Raises:
        ConfigurationError: nothing is left of the name.
    """
    made = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not made:
        raise ConfigurationError(
            f"{what} name {name!r} holds no letter a-z and no digit",
            fix="Choose a name of letters, digits, spaces, dashes or underscores",
        )
    if len(made) > MAX_SLUG:
        raise ConfigurationError(
            f"{what} name {made[:40]!r}... has {len(made)} characters in asset keys and folders",
            fix=f"Use at most {MAX_SLUG}",
        )
    return made


def distinct_slugs(names: list[str], *, what: str) -> dict[str, str]:
    """Name to slug for all `names`.

    Raises:
        ConfigurationError: two names have one slug, or a target's slug equals a built-in asset's name.
    """
    slugs: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name in names:
        made = slug(name, what=what)
        if made in owners:
            raise ConfigurationError(
                f"{what} names {owners[made]!r} and {name!r} both become {made!r} in asset keys and folders",
                fix="Rename one of them",
            )
        if what == "target" and made in BUILT_IN_ASSETS:
            raise ConfigurationError(
                f"target name {name!r} becomes {made!r}, which is the name of a built-in asset", fix="Rename the target"
            )
        owners[made] = name
        slugs[name] = made
    return slugs
