"""What every target looks like to the stage that asks it: one question in, one answer with its passages out."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
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
class How:
    """How an answer was obtained; what is None the stage measures itself.

    Attributes:
        origin: `live` or `replayed`.
        recorded: whether it was written to the cassette just now.
        latency_ms: milliseconds of the real call, also where it was replayed.
        answered_at: when the real call was answered, UTC.
    """

    origin: str = "live"
    recorded: bool = False
    latency_ms: float | None = None
    answered_at: dt.datetime | None = None


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
        how: how it was obtained; no part of what is kept.
    """

    text: str | None
    passages: tuple[Passage, ...] | None = None
    generator: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 1
    how: How = How()

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON, for the journal and the cassette."""
        passages = None if self.passages is None else [dict(vars(passage)) for passage in self.passages]
        # Not `asdict`, which copies every value and would cost more than sending the question.
        return {name: value for name, value in {**vars(self), "passages": passages}.items() if name != "how"}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Answer:
        """The answer of a record."""
        rest = {name: value for name, value in record.items() if name != "passages"}
        passages: list[dict[str, Any]] | None = record["passages"]
        return cls(passages=None if passages is None else tuple(Passage(**row) for row in passages), **rest)


class Target(Protocol):
    """A RAG pipeline under evaluation."""

    def identity(self) -> dict[str, Any]:
        """What makes its answers its own, as JSON without secrets; part of the journal's keys."""
        ...

    async def prepare(self, reporter: Reporter) -> None:
        """Do once what must be done before the first question, such as building an index."""
        ...

    async def answer(self, question: str, trial: int) -> Answer:
        """Answer one question; raises `recording.calls.CallError` where the call fails."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
