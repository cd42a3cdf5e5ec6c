"""Asking a target every question: bounded concurrency, one failure is one row, a dead target ends the stage.

Whatever was answered stands in the journal before the next question is asked, so a run that is stopped resumes.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rag_eval_assets.canonical import is_unicode
from rag_eval_assets.errors import EvalError, InfrastructureError, describe_error
from rag_eval_assets.progress import Reporter, Stage, stage
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.journal import Answered, Journal
from rag_eval_assets.status import AnswerStatus
from rag_eval_assets.tables import CALL_LOG, GENERATED_ANSWERS
from rag_eval_assets.targets.base import Answer, Passage, Target

CODE_VERSION = "1"
"""Raised whenever the same answers would give another `generated_answers` table."""

DEAD_AFTER = 20
"""So many first calls that fail alike, in one of `DEAD_KINDS`, mean a dead target and not bad rows."""

DEAD_KINDS = frozenset({"transport", "timeout", "401", "403", "404", "not_started", "target_fault", "bad_response"})
"""`bad_response`: where no answer can be read at all, the pointers of the suite, or its URL, are wrong."""

MISSING = "recording_missing"
"""A replay without the recording of a call. However many there are, each is a row that says what is missing."""


@dataclass(frozen=True)
class StageOptions:
    """How the stage goes about it.

    Attributes:
        concurrency: questions that are with the target at the same time.
        max_error_rate: share of all questions whose failure ends the stage; None for no bound.
        generator: name of the generator where the target names none.
    """

    concurrency: int = 4
    max_error_rate: float | None = None
    generator: str | None = None


@dataclass(frozen=True)
class Generated:
    """What the stage made: the answers, how each was obtained, and the answers by status."""

    answers: pa.Table
    call_log: pa.Table
    counts: dict[str, int]


Kept = Mapping[tuple[str, int], tuple[dict[str, Any], dict[str, Any]]]
"""Example and trial to a row of `generated_answers` and a line of `call_log` that stand as they are."""


@dataclass
class _Asking:
    """One run of the stage."""

    target: Target
    journal: Answered
    options: StageOptions
    examples: list[dict[str, Any]]
    running: Stage
    identity: dict[str, Any]
    answers: list[dict[str, Any] | None]
    calls: list[dict[str, Any] | None]
    kept: Kept
    failed: Counter[str] = field(default_factory=Counter[str])
    answered: int = 0
    """Calls of this run that were answered; what the journal held does not show that the target is alive now."""

    async def work(self, places: Iterator[int]) -> None:
        """One worker: takes the next question until none is left. All workers share the iterator."""
        for place in places:
            await self.ask(place, trial=0)
            self.running.advance()
            # A target that never waits would keep the loop, and a stop or an error of another worker would be seen
            # only after the last question.
            await asyncio.sleep(0)

    async def ask(self, place: int, trial: int) -> None:
        example = self.examples[place]
        standing = self.kept.get((example["example_id"], trial))
        if standing is not None:
            self.answers[place], line = standing
            self.calls[place] = {**line, "origin": "kept", "recorded": False}
            return
        key = Journal.key(self.identity, example["example_id"], example["question"], trial)
        row_key = {"example_id": example["example_id"], "trial": trial}
        kept = _from_journal(self.journal.get(key))
        if kept is not None:
            answer, latency_ms, answered_at = kept
            self.answers[place] = {**row_key, **self._row(answer)}
            self.calls[place] = {**row_key, **_call("journal", latency_ms, answer.attempts, answered_at)}
            return
        started = time.perf_counter()
        answer, error = await self._call(example["question"], trial)
        latency_ms = (time.perf_counter() - started) * 1000
        answered_at = dt.datetime.now(dt.UTC)
        if answer is not None:
            how = answer.how
            latency_ms = latency_ms if how.latency_ms is None else how.latency_ms
            answered_at = how.answered_at or answered_at
            if how.origin == "live":  # what can be replayed need not be kept twice
                record = {"answer": answer.to_json(), "latency_ms": latency_ms, "answered_at": answered_at.isoformat()}
                self.journal.append(key, record)
            self.answered += 1
            self.answers[place] = {**row_key, **self._row(answer)}
            self.calls[place] = {
                **row_key,
                **_call(how.origin, latency_ms, answer.attempts, answered_at, recorded=how.recorded),
            }
        elif error is not None:
            missing = error.kind == MISSING
            self.answers[place] = {**row_key, **_error_row(error, example["example_id"])}
            origin = "missing" if missing else "live"
            self.calls[place] = {**row_key, **_call(origin, latency_ms, error.attempts, answered_at)}
            if not missing:
                self._stop_if_dead(error)

    async def _call(self, question: str, trial: int) -> tuple[Answer | None, CallError | None]:
        try:
            return await self.target.answer(question, trial), None
        except CallError as error:
            return None, error
        except EvalError:
            raise  # a key that is not set, a damaged cassette: no question would fare better
        except Exception as error:  # noqa: BLE001 - a target's own fault costs one row, whatever it is
            return None, CallError("target_fault", describe_error(error))

    def _stop_if_dead(self, error: CallError) -> None:
        self.failed[error.kind] += 1
        total, errors = len(self.examples), self.failed.total()
        asked = total - len(self.kept)
        alike = self.answered == 0 and len(self.failed) == 1 and error.kind in DEAD_KINDS
        if alike and errors >= min(DEAD_AFTER, asked):
            raise InfrastructureError(
                f"the first {errors} calls all failed ({error.kind}): {error}",
                fix=f"{_what_to_check(error.kind)}, so the stage stopped; nothing was committed",
            )
        rate = self.options.max_error_rate
        if rate is not None and errors > rate * total:
            raise InfrastructureError(
                f"{errors} of {total} calls have failed, more than run.max_error_rate {rate} allows; the last: {error}",
                fix="Nothing was committed; the same command again keeps the answers that arrived",
            )

    def _row(self, answer: Answer) -> dict[str, Any]:
        status, text = _answer_status(answer.text)
        return {
            "status": status,
            "answer": text,
            "error": None,
            "generator": _text(answer.generator) or self.options.generator,
            "passages": None if answer.passages is None else [_passage_row(passage) for passage in answer.passages],
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cost_usd": _finite(answer.cost_usd),
        }


def generate_answers(
    examples: pa.Table,
    target: Target,
    journal: Answered,
    options: StageOptions,
    reporter: Reporter,
    kept: Kept | None = None,
) -> Generated:
    """Ask `target` every question of `examples` (schema `tables.EVAL_EXAMPLES`) that `kept` does not answer.

    Returns:
        One row per example and trial, in the order of `examples`, whatever the concurrency.

    Raises:
        InfrastructureError: the target is dead or fails too often; the journal keeps what was answered.
    """
    return asyncio.run(_generate(examples.to_pylist(), target, journal, options, reporter, kept or {}))


async def _generate(
    examples: list[dict[str, Any]],
    target: Target,
    journal: Answered,
    options: StageOptions,
    reporter: Reporter,
    kept: Kept,
) -> Generated:
    try:
        await target.prepare(reporter)
        with stage(reporter, "generated_answers", len(examples), "answers") as running:
            asking = _Asking(
                target,
                journal,
                options,
                examples,
                running,
                target.identity(),
                [None] * len(examples),
                [None] * len(examples),
                kept,
            )
            places = iter(range(len(examples)))
            await _all_or_first_error([asking.work(places) for _ in range(options.concurrency)])
    finally:
        await target.close()
    answers = pa.Table.from_pylist([row for row in asking.answers if row], schema=GENERATED_ANSWERS.schema)
    call_log = pa.Table.from_pylist([row for row in asking.calls if row], schema=CALL_LOG.schema)
    counts = Counter(str(status) for status in answers.column("status").to_pylist())
    return Generated(answers, call_log, {str(status): counts[str(status)] for status in AnswerStatus})


async def _all_or_first_error(workers: list[Any]) -> None:
    """Run all; the first error cancels the others and is raised as it is."""
    tasks = [asyncio.ensure_future(worker) for worker in workers]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _answer_status(text: str | None) -> tuple[AnswerStatus, str | None]:
    if text is None or not text.strip():
        return AnswerStatus.EMPTY, text
    if not is_unicode(text):
        return AnswerStatus.INVALID_TEXT, _whole_unicode(text)
    return AnswerStatus.OK, text


def _whole_unicode(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, so that it can be stored at all."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _text(text: str | None) -> str | None:
    return None if text is None else _whole_unicode(text)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _passage_row(passage: Passage) -> dict[str, Any]:
    return {
        "id": _text(passage.id),
        "document_id": _text(passage.document_id),
        "text": _text(passage.text),
        "score": _finite(passage.score),
    }


def _from_journal(record: dict[str, Any] | None) -> tuple[Answer, float, dt.datetime] | None:
    """Answer, milliseconds and time of a journal's record; None where there is none or another version wrote it."""
    try:
        if record is None:
            return None
        answered_at = dt.datetime.fromisoformat(record["answered_at"])
        return Answer.from_json(record["answer"]), float(record["latency_ms"]), answered_at
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _error_row(error: CallError, example_id: str) -> dict[str, Any]:
    # A replay miss names its case, as EvalCore does: its text is what a reader searches the recordings for.
    case = f"example {example_id!r}: " if error.kind == MISSING else ""
    return {"status": AnswerStatus.ERROR, "answer": None, "error": _whole_unicode(f"{error.kind}: {case}{error}")}


def _what_to_check(kind: str) -> str:
    if kind == "bad_response":
        return "No answer could be read: check the target's url and its JSON pointers"
    return "The target looks dead"


def _call(
    origin: str, latency_ms: float, attempts: int, answered_at: dt.datetime, *, recorded: bool = False
) -> dict[str, Any]:
    return {
        "origin": origin,
        "latency_ms": latency_ms,
        "attempts": attempts,
        "answered_at": answered_at,
        "recorded": recorded,
    }
