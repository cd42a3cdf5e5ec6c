"""Asking every question: one failure is one row, a dead target ends the stage, and no answer is paid for twice."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.progress import SILENT, Reporter
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.journal import Journal
from rag_eval_assets.tables import CALL_LOG, EVAL_EXAMPLES, GENERATED_ANSWERS
from rag_eval_assets.targets.base import Answer, Passage
from rag_eval_assets.targets.stage import DEAD_AFTER, DEAD_KINDS, Generated, StageOptions, generate_answers


def examples(count: int) -> pa.Table:
    rows = [
        {
            "example_id": f"e{number}",
            "question": f"question {number}",
            "source": "test",
            "source_row": number,
            "row_sha256": f"{number:064d}",
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=EVAL_EXAMPLES.schema)


@dataclass
class ScriptedTarget:
    """Answers each question as `reply` says (text, Answer, or an exception to raise) and keeps what was asked."""

    reply: Callable[[int], Any]
    name: str = "scripted"
    delay: Callable[[], float] = lambda: 0.0
    asked: list[int] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    closed: int = 0

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    async def prepare(self, reporter: Reporter) -> None:
        pass

    async def answer(self, question: str, trial: int) -> Answer:
        assert trial == 0
        number = int(question.removeprefix("question "))
        self.asked.append(number)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay())
        finally:
            self.in_flight -= 1
        reply = self.reply(number)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, Answer) else Answer(reply)

    async def close(self) -> None:
        self.closed += 1


@dataclass
class Watcher:
    """A reporter that counts."""

    totals: dict[str, int] = field(default_factory=dict)
    done: int = 0
    closed: int = 0

    def stage(self, name: str, total: int, unit: str) -> Watcher:
        self.totals[name] = total
        return self

    def advance(self, count: int = 1) -> None:
        self.done += count

    def close(self, stage: object) -> None:
        assert stage is self
        self.closed += 1


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def ask(target: ScriptedTarget, journal: Path, count: int, reporter: Reporter = SILENT, **options: Any) -> Generated:
    with Journal(journal) as opened:
        return generate_answers(examples(count), target, opened, StageOptions(**options), reporter)


def column(made: Generated, name: str) -> list[Any]:
    return made.answers.column(name).to_pylist()


def failing(kind: str, only: Sequence[int] | None = None) -> Callable[[int], Any]:
    return lambda number: CallError(kind, "no") if only is None or number in only else f"answer {number}"


@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_rows_stand_in_the_order_of_the_examples_whatever_the_concurrency(journal: Path, concurrency: int) -> None:
    dice = random.Random(concurrency)
    target = ScriptedTarget(lambda number: f"answer {number}", delay=lambda: dice.uniform(0, 0.01))
    made = ask(target, journal, 50, concurrency=concurrency)
    assert column(made, "example_id") == [f"e{number}" for number in range(50)]
    assert column(made, "answer") == [f"answer {number}" for number in range(50)]
    assert column(made, "trial") == [0] * 50
    assert made.call_log.column("example_id").to_pylist() == column(made, "example_id")
    assert sorted(target.asked) == list(range(50))
    assert target.most_in_flight == min(concurrency, 50)


def test_the_tables_have_the_published_schemas(journal: Path) -> None:
    made = ask(ScriptedTarget(failing("500", only=[1])), journal, 3)
    assert made.answers.schema.equals(GENERATED_ANSWERS.schema, check_metadata=True)
    assert made.call_log.schema.equals(CALL_LOG.schema, check_metadata=True)
    made.answers.validate(full=True)
    made.call_log.validate(full=True)


def test_no_example_gives_no_row(journal: Path) -> None:
    made = ask(ScriptedTarget(str), journal, 0)
    assert (made.answers.num_rows, made.call_log.num_rows, set(made.counts.values())) == (0, 0, {0})


def test_every_answer_has_a_status(journal: Path) -> None:
    replies = ["text", None, "", " \u00a0\n", "half \ud83d", CallError("500", "broken \udc00", attempts=3)]
    made = ask(ScriptedTarget(lambda number: replies[number]), journal, len(replies))
    assert column(made, "status") == ["ok", "empty", "empty", "empty", "invalid_text", "error"]
    assert column(made, "answer") == ["text", None, "", " \u00a0\n", "half \ufffd", None]
    assert column(made, "error") == [None] * 5 + ["500: broken \ufffd"]
    assert made.counts == {"ok": 1, "empty": 3, "invalid_text": 1, "error": 1}
    assert made.call_log.column("attempts").to_pylist() == [1, 1, 1, 1, 1, 3]
    assert made.call_log.column("origin").to_pylist() == ["live"] * 6


@pytest.mark.parametrize(
    "fault", [ValueError("bad"), KeyError(), TimeoutError(), RecursionError("deep"), OSError(5, "x")]
)
def test_whatever_a_target_raises_costs_one_row(journal: Path, fault: Exception) -> None:
    made = ask(ScriptedTarget(lambda number: fault if number == 1 else "fine"), journal, 3)
    assert column(made, "status") == ["ok", "error", "ok"]
    assert column(made, "error")[1].startswith(f"target_fault: {type(fault).__name__}")


def test_no_path_of_this_machine_comes_into_a_row(journal: Path) -> None:
    fault = FileNotFoundError(2, "No such file or directory", "/home/ann/.config/token/key.json")
    made = ask(ScriptedTarget(lambda number: fault if number == 1 else "fine"), journal, 3)
    error = column(made, "error")[1]
    assert "No such file or directory" in error
    assert "ann" not in error and "key.json" not in error


def test_what_the_target_says_beside_the_text_is_kept_as_far_as_it_is_sound(journal: Path) -> None:
    passages = (
        Passage("p \ud83d", "d \udc00", "t \ud83d", math.nan),
        Passage("p", "d", "t", -math.inf),
        Passage(score=0.5),
    )
    sound = Answer("a", passages, "model \udc00", 3, 4, 0.25)
    made = ask(
        ScriptedTarget(lambda number: [sound, Answer("b", (), cost_usd=math.inf)][number]),
        journal,
        2,
        generator="suite",
    )
    first, second = made.answers.to_pylist()
    empty = {"id": None, "document_id": None, "text": None}
    assert first["passages"] == [
        {"id": "p \ufffd", "document_id": "d \ufffd", "text": "t \ufffd", "score": None},
        {"id": "p", "document_id": "d", "text": "t", "score": None},
        {**empty, "score": 0.5},
    ]
    assert [first[name] for name in ("generator", "input_tokens", "output_tokens", "cost_usd")] == [
        "model \ufffd",
        3,
        4,
        0.25,
    ]
    assert (second["passages"], second["generator"], second["cost_usd"]) == ([], "suite", None)


def test_passages_that_the_target_does_not_name_are_null(journal: Path) -> None:
    assert column(ask(ScriptedTarget(lambda _: Answer("a")), journal, 1), "passages") == [None]


@pytest.mark.parametrize("kind", sorted(DEAD_KINDS))
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_target_whose_first_calls_all_fail_alike_is_dead(journal: Path, kind: str, concurrency: int) -> None:
    target = ScriptedTarget(failing(kind))
    with pytest.raises(
        InfrastructureError, match=rf"the first 20 calls all failed \({kind}\): no\. .*nothing was committed"
    ):
        ask(target, journal, 200, concurrency=concurrency)
    assert DEAD_AFTER <= len(target.asked) < DEAD_AFTER + concurrency
    assert target.closed == 1


def test_exceptions_of_a_broken_target_are_a_dead_target_too(journal: Path) -> None:
    with pytest.raises(
        InfrastructureError, match=r"the first 20 calls all failed \(target_fault\): AttributeError: oops"
    ):
        ask(ScriptedTarget(lambda _: AttributeError("oops")), journal, 200)


@pytest.mark.parametrize("count", [1, 5, 19])
def test_a_small_data_set_whose_calls_all_fail_alike_means_a_dead_target(journal: Path, count: int) -> None:
    target = ScriptedTarget(failing("transport"))
    with pytest.raises(InfrastructureError, match=rf"the first {count} calls all failed"):
        ask(target, journal, count)
    assert len(target.asked) == count


@pytest.mark.parametrize(
    "reply",
    [
        failing("500"),
        lambda number: CallError("transport" if number % 2 else "timeout", "no"),
        lambda number: "answer" if number == 0 else CallError("transport", "no"),
        lambda number: "answer" if number == DEAD_AFTER - 1 else CallError("401", "no"),
        lambda number: None if number == 3 else CallError("401", "no"),
    ],
    ids=["server error", "two kinds", "first answered", "twentieth answered", "empty answer"],
)
def test_failures_that_do_not_show_a_dead_target_are_rows(journal: Path, reply: Callable[[int], Any]) -> None:
    made = ask(ScriptedTarget(reply), journal, 50, concurrency=1)
    assert made.answers.num_rows == 50
    assert made.counts["error"] >= 49


def test_answers_of_an_earlier_run_do_not_show_that_the_target_is_alive_now(journal: Path) -> None:
    with pytest.raises(InfrastructureError):
        ask(ScriptedTarget(failing("500", only=range(10, 100))), journal, 100, concurrency=1, max_error_rate=0.05)
    target = ScriptedTarget(failing("transport"))
    with pytest.raises(InfrastructureError, match="the first 20 calls all failed"):
        ask(target, journal, 100, concurrency=1)
    assert target.asked == list(range(10, 30))
    made = ask(ScriptedTarget(lambda number: f"answer {number}"), journal, 100)
    assert made.call_log.column("origin").to_pylist() == ["journal"] * 10 + ["live"] * 90


def test_more_failures_than_allowed_end_the_stage_and_the_journal_is_kept(journal: Path) -> None:
    bad = range(3, 50, 2)
    watcher = Watcher()
    first = ScriptedTarget(failing("500", only=bad))
    with pytest.raises(
        InfrastructureError, match=r"6 of 50 calls have failed, .*run\.max_error_rate 0\.1 allows; the last: no"
    ):
        ask(first, journal, 50, watcher, concurrency=1, max_error_rate=0.1)
    assert (first.asked, first.closed, watcher.closed) == (list(range(14)), 1, 1)
    second = ScriptedTarget(lambda number: f"answer {number}")
    made = ask(second, journal, 50, max_error_rate=0.1)
    answered = [number for number in range(13) if number not in bad]
    assert sorted(second.asked) == [number for number in range(50) if number not in answered]
    origins = made.call_log.column("origin").to_pylist()
    assert [number for number in range(50) if origins[number] == "journal"] == answered
    assert column(made, "answer") == [f"answer {number}" for number in range(50)]


def test_as_many_failures_as_allowed_are_rows(journal: Path) -> None:
    made = ask(ScriptedTarget(failing("500", only=range(5))), journal, 50, concurrency=1, max_error_rate=0.1)
    assert made.counts == {"ok": 45, "empty": 0, "invalid_text": 0, "error": 5}


def test_with_no_failure_allowed_the_first_one_ends_the_stage(journal: Path) -> None:
    target = ScriptedTarget(failing("500", only=[2]))
    with pytest.raises(InfrastructureError, match="1 of 50 calls have failed"):
        ask(target, journal, 50, concurrency=1, max_error_rate=0.0)
    assert target.asked == [0, 1, 2]


def test_a_resumed_run_makes_the_table_of_an_uninterrupted_one(journal: Path, tmp_path: Path) -> None:
    def reply(number: int) -> Any:
        passages = (Passage(f"p{number}", "d", "text \ud83d", math.nan),)
        return Answer(["text", "", None, "half \udc00"][number % 4], passages, None, number, None, 0.1 * number)

    whole = ask(ScriptedTarget(reply), tmp_path / "other.jsonl", 40)
    with pytest.raises(InfrastructureError):
        stop = ScriptedTarget(lambda number: reply(number) if number < 25 else CallError("500", "no"))
        ask(stop, journal, 40, concurrency=1, max_error_rate=0.0)
    resumed = ask(ScriptedTarget(reply), journal, 40)
    assert resumed.answers.equals(whole.answers)
    assert resumed.call_log.column("origin").to_pylist() == ["journal"] * 25 + ["live"] * 15
    again = ask(ScriptedTarget(reply), journal, 40)
    assert again.call_log.drop_columns(["origin"]).equals(resumed.call_log.drop_columns(["origin"]))


def test_failures_are_asked_again(journal: Path) -> None:
    assert ask(ScriptedTarget(failing("500", only=[1])), journal, 3).counts["error"] == 1
    target = ScriptedTarget(lambda number: f"answer {number}")
    assert ask(target, journal, 3).counts["ok"] == 3
    assert target.asked == [1]


def test_another_target_gets_no_answer_of_this_one(journal: Path) -> None:
    ask(ScriptedTarget(lambda number: "one", name="one"), journal, 3)
    made = ask(ScriptedTarget(lambda number: "two", name="two"), journal, 3)
    assert column(made, "answer") == ["two"] * 3


@pytest.mark.parametrize(
    "record", [{}, {"answer": 3}, {"answer": {"text": "a"}}, {"answer": {"passages": [3], "text": "a"}}]
)
def test_a_record_that_another_version_wrote_is_asked_again(journal: Path, record: dict[str, Any]) -> None:
    with Journal(journal) as opened:
        opened.append(
            Journal.key({"name": "scripted"}, "e0", "question 0", 0),
            {"answered_at": "2026-03-01", "latency_ms": 1, **record},
        )
    assert column(ask(ScriptedTarget(lambda number: "new"), journal, 1), "answer") == ["new"]


def test_progress_reaches_the_total_also_for_failures_and_resumed_answers(journal: Path) -> None:
    ask(ScriptedTarget(failing("500", only=range(10, 30))), journal, 30)
    watcher = Watcher()
    ask(ScriptedTarget(failing("500", only=range(20, 30))), journal, 30, watcher)
    assert (watcher.totals, watcher.done, watcher.closed) == ({"generated_answers": 30}, 30, 1)


def test_a_target_that_cannot_be_prepared_is_closed_and_asked_nothing(journal: Path) -> None:
    class Unprepared(ScriptedTarget):
        async def prepare(self, reporter: Reporter) -> None:
            raise InfrastructureError("no index")

    target = Unprepared(str)
    with pytest.raises(InfrastructureError, match="no index"):
        ask(target, journal, 3)
    assert (target.asked, target.closed) == ([], 1)


def test_calls_that_are_under_way_are_cancelled_when_the_stage_stops(journal: Path) -> None:
    target = ScriptedTarget(failing("500", only=[0]), delay=lambda: 0.0 if target.asked == [0] else 60.0)
    with pytest.raises(InfrastructureError):
        ask(target, journal, 10, concurrency=4, max_error_rate=0.0)
    assert (sorted(target.asked), target.in_flight) == ([0, 1, 2, 3], 0)
