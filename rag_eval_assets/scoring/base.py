"""What a scorer is: the pairs that go in, the scores that come out, and the protocol between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.tables import TableSpec

Advance = Callable[[int], None]
"""Is told how many further pairs are done."""


@dataclass(frozen=True)
class Pair:
    """A candidate text and the reference texts that it may match, as they come: either side may hold no text at all.

    Attributes:
        candidate: the generated answer; None where there is none.
        references: one or several acceptable answers.
        case: id of the example, for messages.
    """

    candidate: str | None
    references: tuple[str | None, ...]
    case: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a scorer with a threshold says of a pair.

    Attributes:
        passed: whether the value reaches the threshold.
        value: the score; 0.0 where there is none, as in EvalCore.
        threshold: what it was compared with.
        reason: why it failed; None where it passed.
    """

    passed: bool
    value: float
    threshold: float
    reason: str | None


@dataclass(frozen=True)
class PairScore:
    """What became of one pair.

    Attributes:
        status: `scored`, or why there is no score.
        truncated: whether the model saw only the beginning of one of the texts.
        values: the scores by name, all finite; None unless the status is `scored`.
        detail: further explanation of the status.
        verdict: of scorers with a threshold.
    """

    status: ScoreStatus
    truncated: bool = False
    values: Mapping[str, float] | None = None
    detail: str | None = None
    verdict: Verdict | None = None


class Scorer(Protocol):
    """A metric together with the model that it uses.

    Attributes:
        name: name of the metric and of its asset.
        code_version: changes whenever the same inputs would give other values.
        spec: the table that holds its scores; the columns after `truncated` are its values.
    """

    @property
    def name(self) -> str: ...

    @property
    def code_version(self) -> str: ...

    @property
    def spec(self) -> TableSpec: ...

    def for_references(self, references: Iterable[Any]) -> Scorer:
        """The scorer for a table with these references, whatever of them is text; itself where that is all the same."""
        ...

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        """Score every pair, in order; as many results as pairs. A pair that cannot be scored gets a status.

        Raises:
            ConfigurationError: the model itself cannot be used.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """What a report says about the metric: model, settings and library versions; never a path."""
        ...


def no_advance(count: int) -> None:
    """An `Advance` for callers that follow no progress."""
    del count


def value_names(spec: TableSpec) -> tuple[str, ...]:
    """The names of a score table's value columns: all that follow `truncated`."""
    names = [column.name for column in spec.columns]
    return tuple(names[names.index("truncated") + 1 :])


def library_versions(*distributions: str) -> dict[str, str]:
    """Installed version of each distribution; "not installed" where there is none."""
    return {name: _version(name) for name in distributions}


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
