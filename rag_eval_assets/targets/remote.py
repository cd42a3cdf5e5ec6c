"""What the targets behind HTTP share: a channel in front of a transport, and an answer read from JSON."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any

from rag_eval_assets.progress import Reporter
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.channel import Channel
from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.recording.recorded import RecordingFault
from rag_eval_assets.recording.retries import RetryPolicy
from rag_eval_assets.recording.transport import HttpRequest, Transport, excerpt
from rag_eval_assets.suite.targets import HttpTarget, OpenAICompatibleTarget
from rag_eval_assets.targets.base import Answer, How
from rag_eval_assets.targets.pointers import ShapeError, priced


class RemotePipeline(ABC):
    """A target that is asked over HTTP; answers are recorded and replayed as the channel's mode says.

    Args:
        config: the target in the suite.
        channel: decides whether a call is made.
        concurrency: calls at the same time.
    """

    def __init__(self, config: HttpTarget | OpenAICompatibleTarget, channel: Channel, concurrency: int) -> None:
        self._config = config
        self._channel = channel
        self._transport = Transport(concurrency, offline=channel.mode is Mode.REPLAY)
        self._called = self._call_identity()
        self._policy = RetryPolicy(max_retries=config.max_retries, timeout_seconds=config.timeout_seconds)

    def identity(self) -> dict[str, Any]:
        """All settings that the answers depend on; the variables that hold keys are none of them."""
        return self._config.settings()

    async def prepare(self, reporter: Reporter) -> None:
        """Nothing is called yet; raises RecordingMissingError in a replay without a cassette."""
        del reporter
        self._channel.require()

    async def answer(self, question: str, trial: int) -> Answer:
        """Ask, or replay; raises CallError."""
        try:
            recorded = await self._channel.call(self._called, self._sent(question), trial, lambda: self._ask(question))
        except RecordingFault as fault:
            raise CallError(fault.kind, str(fault), attempts=0) from None
        answer = Answer.from_json(recorded.output)
        how = How(recorded.origin, recorded.recorded, recorded.latency_ms, recorded.answered_at)
        return dataclasses.replace(answer, cost_usd=priced(answer, self._config.prices), how=how)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _ask(self, question: str) -> dict[str, Any]:
        """The answer of a real call as JSON, as it is recorded: prices, which may change, are not applied yet."""
        response = await self._transport.send(self._request(question), self._policy)
        document = self._transport.redactor.answer(response.json())
        try:
            answer = self._read(document)
        except ShapeError as error:
            raise response.bad(f"{error}. It begins: {excerpt(response.body)}") from None
        return dataclasses.replace(answer, attempts=response.attempts).to_json()

    @abstractmethod
    def _call_identity(self) -> dict[str, Any]:
        """What the cassette knows the target by."""

    @abstractmethod
    def _sent(self, question: str) -> str:
        """What the cassette knows a question by."""

    @abstractmethod
    def _request(self, question: str) -> HttpRequest:
        """The request for a question. Resolves secrets, so it is made for real calls only."""

    @abstractmethod
    def _read(self, document: Any) -> Answer:
        """The answer in a response; raises ShapeError."""
