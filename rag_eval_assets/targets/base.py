"""What every target looks like to the stage that asks it: one question in, one answer with its passages out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from rag_eval_assets.progress import Reporter


@dataclass(frozen=True)
class Passage:
    """One retrieved passage; whatever the pipeline does not say is None.

    Attributes:
        id: the passage's own id.
        document_id: id of the document that it was cut from.
        text: its text.
        score: the retriever's score; higher is better, the scale is the pipeline's.
    """

    id: str | None = None
    document_id: str | None = None
    text: str | None = None
    score: float | None = None


@dataclass(frozen=True)
class Answer:
    """What a pipeline returned for one question.

    Attributes:
        text: the answer; None where it gave none.
        passages: what it retrieved, best first; None where it does not say.
        generator: name of the generating model, as the pipeline says.
        input_tokens, output_tokens: usage, as the pipeline says.
        cost_usd: cost in US dollars, where the suite has prices.
        attempts: how many times the call was tried.
    """

    text: str | None
    passages: tuple[Passage, ...] | None = None
    generator: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 1

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON, for the journal."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Answer:
        """The answer of a journal's record."""
        rest = {name: value for name, value in record.items() if name != "passages"}
        passages: list[dict[str, Any]] | None = record["passages"]
        return cls(passages=None if passages is None else tuple(Passage(**row) for row in passages), **rest)


class TargetCallError(Exception):
    """One call failed. It costs one row, unless the first calls all fail alike (see `stage`).

    Attributes:
        kind: what failed, in a word that equal causes share: `transport`, `timeout`, `401`, `500`, `bad_response`...
        attempts: how many times the call was tried.
    """

    def __init__(self, kind: str, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts


class Target(Protocol):
    """A RAG pipeline under evaluation."""

    def identity(self) -> dict[str, Any]:
        """What makes its answers its own, as JSON without secrets; part of the journal's keys."""
        ...

    async def prepare(self, reporter: Reporter) -> None:
        """Do once what must be done before the first question, such as building an index."""
        ...

    async def answer(self, question: str, trial: int) -> Answer:
        """Answer one question; raises TargetCallError where the call fails."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
