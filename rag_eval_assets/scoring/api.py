"""The Python interface to the scorers: pairs of texts in, a table of scores out, without suite and Dagster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.base import Pair, PairScore, Scorer, no_advance, value_names
from rag_eval_assets.scoring.cache import cache_folder, limit_mb, open_stores
from rag_eval_assets.scoring.registry import SCORERS, build_scorer, nearest, scorer_entry
from rag_eval_assets.scoring.stores import MemoryStore, Stores

_SHARED_BYTES = 64_000_000
"""Sentence vectors that the scorers of one call share, in bytes: 40,000 texts at 384 dimensions."""

ENGINES = ("reference",)
"""Names that `score(engine=...)` takes: "reference" calls the public packages."""


def score(
    candidates: Iterable[str | None],
    references: Iterable[str | Sequence[str | None] | None],
    *,
    scorers: Sequence[str] = ("bertscore", "sentence_cosine"),
    models: Mapping[str, str] | None = None,
    engine: str | None = None,
    cache: bool = True,
) -> pa.Table:
    """Score candidate texts against reference texts.

    Example:
        >>> table = score(["It opens at nine."], ["The shop opens at 9 a.m."], scorers=["sentence_cosine"])
        >>> table.column_names
        ['sentence_cosine', 'sentence_cosine_status', 'sentence_cosine_truncated']

    Args:
        candidates: the texts to judge; None where there is none.
        references: as many entries: a text, a list of acceptable texts, or None.
        scorers: names of the scorers to run.
        models: model id by scorer name. By default bertscore uses bert-base-uncased, and sentence_cosine
            all-MiniLM-L6-v2; another model never steps in for one that is missing.
        engine: "reference" to call bert-score and sentence-transformers themselves, one pair at a time; by default
            the packed encoder, whose values are within 1e-6 of theirs.
        cache: look scores up in, and add them to, the cache of the home folder (`RAG_EVAL_HOME`, else `./.rag-eval`),
            where that folder exists.

    Returns:
        A row per pair. First the values, each in [-1, 1] or null: `bertscore_precision`, `bertscore_recall`,
        `bertscore_f1`, `sentence_cosine`; then per scorer `<scorer>_status` ("scored", or why not) and
        `<scorer>_truncated` (whether the model saw only the beginning of a text).

    Raises:
        ConfigurationError: the lengths differ, a scorer, model or engine is unknown, or a model is not available.
    """
    pairs = _pairs(_texts("candidates", candidates), _texts("references", references))
    _check_engine(engine)
    chosen = models or {}
    names = dict.fromkeys((scorers,) if isinstance(scorers, str) else scorers)
    for name in (*names, *chosen):
        scorer_entry(name)
    options = {} if engine is None else {"engine": engine}
    stores = _stores(cache)
    # In the order in which one may use what the other has encoded.
    order = sorted(names, key=list(SCORERS).index)
    built = [build_scorer(name, chosen.get(name), options=options, stores=stores) for name in order]
    references = [text for pair in pairs for text in pair.references]
    scored = {scorer.name: scorer.for_references(references).score_pairs(pairs, no_advance) for scorer in built}
    results = [(scorer, scored[scorer.name]) for name in names for scorer in built if scorer.name == name]
    columns: dict[str, pa.Array[Any]] = {}
    for scorer, scores in results:
        columns.update(_value_columns(scorer, scores))
    for scorer, scores in results:
        columns[f"{scorer.name}_status"] = pa.array([entry.status.value for entry in scores], pa.string())
        columns[f"{scorer.name}_truncated"] = pa.array([entry.truncated for entry in scores], pa.bool_())
    return pa.table(columns)


def _stores(cache: bool) -> Stores:
    """The home's, where there is a home; a library makes no folder that nobody asked for."""
    home = Home.from_environment()
    if cache and home.root.is_dir() and limit_mb():
        return open_stores(cache_folder(home))
    # For the vectors that one scorer leaves to the other; all else is kept by nobody.
    return Stores(scores=MemoryStore(0), vectors=MemoryStore(_SHARED_BYTES, lambda vector: vector.nbytes))


def _value_columns(scorer: Scorer, scores: Sequence[PairScore]) -> dict[str, pa.Array[Any]]:
    names = value_names(scorer.spec)
    return {
        # A scorer with one value lends it its own name.
        scorer.name if len(names) == 1 else f"{scorer.name}_{name}": pa.array(
            [entry.values[name] if entry.values is not None else None for entry in scores], pa.float64()
        )
        for name in names
    }


def _texts(field: str, texts: Iterable[Any]) -> list[Any]:
    if isinstance(texts, str):
        raise ConfigurationError(f"{field} is one text", fix="Give a list with one entry per pair")
    return texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else list(texts)


def _pairs(candidates: Sequence[Any], references: Sequence[Any]) -> list[Pair]:
    if len(candidates) != len(references):
        raise ConfigurationError(
            f"There are {len(candidates)} candidates and {len(references)} references",
            fix="Give one reference, or list of references, per candidate",
        )
    return [
        Pair(candidate, _alternatives(reference)) for candidate, reference in zip(candidates, references, strict=True)
    ]


def _alternatives(reference: Any) -> tuple[Any, ...]:
    return tuple(cast("Sequence[Any]", reference)) if isinstance(reference, list | tuple) else (reference,)


def _check_engine(engine: str | None) -> None:
    if engine is not None and engine not in ENGINES:
        raise ConfigurationError(
            f"Unknown engine {engine!r}", fix=f"{nearest(engine, ENGINES)}Engines: {', '.join(ENGINES)}"
        )
