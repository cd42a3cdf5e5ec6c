"""Which rows of a data set become examples: a condition on columns, a random sample (always the same), a limit."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.dataset.rows import RowSource
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.models import RandomSample, Where


def condition_columns(source: RowSource, where: Where) -> list[str]:
    """The columns that the condition looks at.

    Raises:
        ConfigurationError: the source has no such column.
    """
    missing = [column for column in where if column not in source.columns]
    if missing:
        raise ConfigurationError(
            f"data file {source.name!r} has no column {missing[0]!r}, which 'where' names; "
            f"it has {source.shown_columns}",
            fix="Correct 'where' in the suite",
        )
    return list(where)


def satisfies(values: Mapping[str, str | None], where: Where) -> bool:
    """Whether a row has, in every column of the condition, one of the values that it allows."""
    return all(
        values[column] in (allowed if isinstance(allowed, list) else [allowed]) for column, allowed in where.items()
    )


def describe(where: Where, sample: RandomSample | None, limit: int | None) -> str | None:
    """What a data set's `where`, `random_sample` and `limit` choose, in words; None where they choose all."""
    parts = [f"{column} is {' or '.join(v if isinstance(v, list) else [v])}" for column, v in where.items()]
    if sample is not None:
        parts.append(f"a random sample of {sample.size} (seed {sample.seed})")
    if limit is not None:
        parts.append(f"the first {limit}")
    return ", of these ".join(parts) or None


def choose(examples: pa.Table, sample: RandomSample | None, limit: int | None) -> pa.Table:
    """The sample of `examples`, in their order, and of it the first `limit`.

    A row's lot depends on the seed, its id and its content alone: rows that are added elsewhere do not change which of
    the old ones are drawn before which.
    """
    if sample is not None and sample.size < examples.num_rows:
        names = zip(examples["example_id"].to_pylist(), examples["row_sha256"].to_pylist(), strict=True)
        lots = [content_hash([sample.seed, *name]) for name in names]
        drawn = sorted(sorted(range(len(lots)), key=lots.__getitem__)[: sample.size])
        examples = examples.take(drawn)
    return examples[:limit]
