"""The `similarity` scorer: cosine of embeddings from an OpenAI-compatible service, against a threshold.

Scores are computed from the vector as it is recorded, also when it has just been fetched, so that a replayed score
equals the live one to the last bit, and another threshold needs no new recording.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.cassette.vectors import unpack
from rag_eval_assets.recording.channel import Channel
from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.recording.recorded import NOTES, Call, Recorded, RecordingFault
from rag_eval_assets.recording.request import embeddings_identity
from rag_eval_assets.recording.retries import RetryPolicy
from rag_eval_assets.recording.transport import Transport
from rag_eval_assets.scoring.base import Advance, Pair, PairScore
from rag_eval_assets.scoring.similarity_calls import EmbeddingsClient
from rag_eval_assets.scoring.similarity_rule import failing, judge
from rag_eval_assets.scoring.texts import classify, usable_references
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets.tables import similarity_table

CODE_VERSION = "1"

DEAD_AFTER = 20
"""So many first calls that fail alike, in one of `DEAD_KINDS`, mean a dead service and not bad texts."""

DEAD_KINDS = frozenset({"transport", "timeout", "401", "403", "404", "bad_response"})

_LEAST_PAIRS = 32
"""Pairs whose texts are looked up and called for together; progress is told after each such block."""

_REASONS = {
    ScoreStatus.NO_REFERENCE: "the example has no expected answer",
    ScoreStatus.EMPTY_REFERENCE: "the expected answer is empty or white space, so nothing was sent",
    ScoreStatus.NO_ANSWER: "there is no answer",
    ScoreStatus.EMPTY_ANSWER: "the answer is empty or white space, so nothing was sent",
    ScoreStatus.INVALID_TEXT: "a text holds lone surrogates and cannot be sent",
}


@dataclass(frozen=True)
class SimilaritySettings:
    """What a suite says of a `similarity` scorer; see `suite.scorers.Similarity`."""

    url: str
    model: str
    name: str = "similarity"
    api_key_env: str | None = None
    threshold: float = 0.8
    references: tuple[str, ...] = ()
    dimensions: int | None = None
    batch_size: int = 1
    timeout_seconds: float = 120.0
    max_retries: int = 2
    usd_per_million_tokens: float | None = None


class Similarity:
    """Raw cosine of an answer and its reference, the best of several; it passes with the threshold less 1e-9.

    Args:
        settings: what the suite says.
        channel: the calls for embeddings, with their recordings.
        concurrency: requests at the same time.
    """

    code_version = CODE_VERSION

    def __init__(self, settings: SimilaritySettings, channel: Channel, *, concurrency: int = 4) -> None:
        self.name = settings.name
        self.spec = similarity_table(settings.name)
        self._settings = settings
        self._channel = channel
        self._concurrency = concurrency
        self._identity = embeddings_identity(settings.url, settings.model, dimensions=settings.dimensions)
        self._tokens: dict[str, int | None] = {}
        self._requests = 0
        self._liveness = _Liveness()

    def for_references(self, references: Iterable[Any]) -> Similarity:
        """This scorer, which depends on no other reference than a pair's own."""
        del references
        return self

    def score_pairs(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        """Score every pair; a call that fails costs the pairs that needed its text, and their verdict says why.

        Raises:
            RecordingMissingError: replay was asked for and there is no cassette.
            ConfigurationError: the variable with the key is not set, and a call needs it.
            InfrastructureError: the service is dead.
        """
        self._channel.require()
        return asyncio.run(self._score(pairs, advance))

    def describe(self) -> dict[str, Any]:
        """Model, service, threshold, and what else the scores depend on."""
        settings = self._settings
        further = {"dimensions": settings.dimensions, "references": list(settings.references) or None}
        return {
            "id": settings.model,
            "type": "similarity",
            "url": settings.url,
            "threshold": settings.threshold,
            **{name: value for name, value in further.items() if value is not None},
        }

    def calls(self) -> dict[str, int | float | None]:
        """A row of `tables.scorer_calls_table`: how the calls so far were answered."""
        told = [tokens for tokens in self._tokens.values() if tokens is not None]
        tokens, price = (sum(told) if told else None), self._settings.usd_per_million_tokens
        counts = self._channel.counts
        return {
            **{name: counts[name] for name in ("live", "replayed", "recorded", "missing")},
            "requests": self._requests,
            "tokens": tokens,
            "cost_usd": None if tokens is None or price is None else tokens * price / 1e6,
        }

    async def _score(self, pairs: Sequence[Pair], advance: Advance) -> list[PairScore]:
        settings = self._settings
        policy = RetryPolicy(max_retries=settings.max_retries, timeout_seconds=settings.timeout_seconds)
        size = max(_LEAST_PAIRS, self._concurrency * settings.batch_size)
        scores: list[PairScore] = []
        async with Transport(self._concurrency, offline=self._channel.mode is Mode.REPLAY) as transport:
            client = EmbeddingsClient(
                transport, settings.url, settings.model, settings.dimensions, settings.api_key_env, policy
            )
            for start in range(0, len(pairs), size):
                block = pairs[start : start + size]
                scores.extend(await self._score_block(client, block))
                advance(len(block))
            self._requests += client.requests
        return scores

    async def _score_block(self, client: EmbeddingsClient, pairs: Sequence[Pair]) -> list[PairScore]:
        judged = [self._with_references(pair) for pair in pairs]
        statuses = [classify(pair) for pair in judged]
        ready = [pair for pair, status in zip(judged, statuses, strict=True) if status is None]
        calls = [call for pair in ready for call in self._calls_of(pair)]

        async def live(places: Sequence[int]) -> list[dict[str, Any] | Exception]:
            answers = await client.embed([calls[place].text for place in places])
            self._liveness.see(answers)
            return answers

        outcomes = iter(
            await self._channel.call_many(
                calls, live, batch_size=self._settings.batch_size, concurrency=self._concurrency
            )
        )
        return [
            self._judge(pair, [next(outcomes) for _ in self._calls_of(pair)])
            if status is None
            else failing(status, self._settings.threshold, _REASONS[status])
            for pair, status in zip(judged, statuses, strict=True)
        ]

    def _count_tokens(self, outcome: Recorded) -> None:
        notes: dict[str, Any] = outcome.output.get(NOTES) or {}
        tokens = notes.get("tokens")
        # With recordings each text is paid for once; without, each time.
        again = self._tokens.get(outcome.key) if self._channel.mode is Mode.OFF else None
        self._tokens[outcome.key] = None if tokens is None else int(tokens) + (again or 0)

    def _with_references(self, pair: Pair) -> Pair:
        own = pair.references
        if not self._settings.references:
            return pair
        return Pair(pair.candidate, (*own, *self._settings.references), pair.case)

    def _calls_of(self, pair: Pair) -> list[Call]:
        """The references' calls, then the answer's. The trial is no part of them: a text has one embedding."""
        where = f" of example {pair.case!r}" if pair.case else ""
        references = [Call(self._identity, text, role=f"reference{where}") for text in usable_references(pair)]
        return [*references, Call(self._identity, pair.candidate or "", role=f"output{where}")]

    def _judge(self, pair: Pair, outcomes: Sequence[Recorded | Exception]) -> PairScore:
        threshold = self._settings.threshold
        vectors: list[Any] = []
        for call, outcome in zip(self._calls_of(pair), outcomes, strict=True):
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                vectors.append(unpack(outcome.output.get("vector", {})))
                self._count_tokens(outcome)
            except (CallError, RecordingFault) as error:
                return failing(ScoreStatus.SCORER_ERROR, threshold, _told(call.role, error))
            except ValueError as error:
                return failing(
                    ScoreStatus.SCORER_ERROR, threshold, f"scorer error: {call.role}: its recording is {error}"
                )
        return judge(vectors[:-1], vectors[-1], threshold)


@dataclass
class _Liveness:
    """Whether the service answers at all."""

    answered: bool = False
    failed: Counter[str] = field(default_factory=Counter[str])

    def see(self, outcomes: Sequence[dict[str, Any] | Exception]) -> None:
        """Raise InfrastructureError where all calls so far failed alike, and they are many."""
        for outcome in outcomes:
            if isinstance(outcome, CallError):
                self.failed[outcome.kind] += 1
            else:
                self.answered = True
        kind = next(iter(self.failed), "") if len(self.failed) == 1 else ""
        if not self.answered and kind in DEAD_KINDS and self.failed[kind] >= DEAD_AFTER:
            last = next(outcome for outcome in outcomes if isinstance(outcome, CallError))
            raise InfrastructureError(
                f"the first {self.failed[kind]} calls for embeddings all failed ({kind}): {last}",
                fix="The service looks dead, so the stage stopped; nothing was committed",
            )


def _told(role: str, error: CallError | RecordingFault) -> str:
    """The whole cause: which text of which example, what kind of failure, and its message."""
    return f"scorer error: {role}: {error.kind}: {error}"
