"""What each mode does with a call, that nobody makes one twice, and how a call that cannot be replayed reads."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_eval_assets.errors import RecordingMissingError
from rag_eval_assets.recording.cassette.store import Cassette
from rag_eval_assets.recording.channel import Channel, open_channel
from rag_eval_assets.recording.modes import (
    FROM_THE_COMMAND_LINE,
    ON_A_SCHEDULE,
    Mode,
    Modes,
    choose_modes,
)
from rag_eval_assets.recording.recorded import Call, DamagedRecording, MissingRecording, Recorded

IDENTITY = {"type": "test", "url": "http://h"}
ROOT = Path(__file__).parents[2]


class Service:
    """Counts what it is asked, and answers with the number of the call."""

    def __init__(self, pause: float = 0.0, fails: bool = False) -> None:
        self.asked: list[str] = []
        self._pause = pause
        self._fails = fails

    async def answer(self, text: str) -> dict[str, Any]:
        self.asked.append(text)
        await asyncio.sleep(self._pause)
        if self._fails:
            raise TimeoutError(text)
        return {"said": f"{text} {len(self.asked)}"}


def channel(folder: Path, mode: Mode) -> Any:
    return open_channel("target", mode, folder, record_with="`rag-eval run s.yaml --cache auto`")


def ask(folder: Path, mode: Mode, service: Service, *texts: str) -> list[Recorded]:
    """Ask all at the same time."""

    async def all_of(calls: Channel) -> list[Recorded]:
        return await asyncio.gather(*[calls.call(IDENTITY, t, 0, lambda t=t: service.answer(t)) for t in texts])

    with channel(folder, mode) as calls:
        return asyncio.run(all_of(calls))


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "suite.cassette"


def test_auto_calls_once_and_then_replays(folder: Path) -> None:
    service = Service()
    (first,) = ask(folder, Mode.AUTO, service, "a")
    (again,) = ask(folder, Mode.AUTO, service, "a")
    assert service.asked == ["a"]
    assert (first.origin, first.recorded, again.origin, again.recorded) == ("live", True, "replayed", False)
    assert first.output == again.output == {"said": "a 1"}
    assert again.answered_at == first.answered_at  # when it was really answered
    assert again.latency_ms == pytest.approx(first.latency_ms, abs=1e-3)


def test_replay_calls_nobody_and_changes_no_byte(folder: Path) -> None:
    service = Service()
    ask(folder, Mode.AUTO, service, "a")
    before = contents(folder)
    (replayed,) = ask(folder, Mode.REPLAY, service, "a")
    assert replayed.output == {"said": "a 1"}
    with pytest.raises(MissingRecording) as raised:
        ask(folder, Mode.REPLAY, service, "b")
    assert raised.value.key in str(raised.value)
    assert "`rag-eval run s.yaml --cache auto`" in str(raised.value)
    assert service.asked == ["a"]
    assert contents(folder) == before


def test_live_always_calls_and_replaces(folder: Path) -> None:
    service = Service()
    ask(folder, Mode.AUTO, service, "a")
    ask(folder, Mode.LIVE, service, "a")
    (replayed,) = ask(folder, Mode.REPLAY, service, "a")
    assert service.asked == ["a", "a"]
    assert replayed.output == {"said": "a 2"}


def test_in_live_equal_questions_are_asked_as_often_as_they_stand_there(folder: Path) -> None:
    service = Service()
    ask(folder, Mode.LIVE, service, "a", "a", "a")
    assert service.asked == ["a", "a", "a"]


def test_off_touches_nothing(folder: Path) -> None:
    service = Service()
    ask(folder, Mode.OFF, service, "a", "a")
    assert not folder.exists()
    ask(folder, Mode.AUTO, service, "a")
    before = contents(folder)
    ask(folder, Mode.OFF, service, "a")
    assert service.asked == ["a"] * 4
    assert contents(folder) == before


def test_errors_are_never_recorded_and_leave_no_cassette(folder: Path) -> None:
    with pytest.raises(TimeoutError):
        ask(folder, Mode.AUTO, Service(fails=True), "a")
    assert not folder.exists()
    service = Service()
    ask(folder, Mode.AUTO, service, "a")
    assert service.asked == ["a"]


def test_equal_calls_at_the_same_time_are_made_once(folder: Path) -> None:
    service = Service(pause=0.02)
    answers = ask(folder, Mode.AUTO, service, *["a"] * 20)
    assert service.asked == ["a"]
    assert {answer.output["said"] for answer in answers} == {"a 1"}


def test_also_from_several_threads(folder: Path) -> None:
    service = Service(pause=0.05)
    threads = [threading.Thread(target=ask, args=(folder, Mode.AUTO, service, "a", "b")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(service.asked) == ["a", "b"]


def test_also_from_several_processes(folder: Path, tmp_path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
from rag_eval_assets_tests.recording import test_channel as t
class Service(t.Service):
    async def answer(self, text):
        with open({str(tmp_path / "asked")!r}, "a") as file:
            file.write(text + "\\n")
        return await super().answer(text)
t.ask(Path({str(folder)!r}), t.Mode.AUTO, Service(pause=0.2), *[f"text {{n}}" for n in range(10)])
"""
    running = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert sorted(asked) == sorted(f"text {number}" for number in range(10))


def test_who_waits_for_a_call_that_fails_makes_it_itself(folder: Path) -> None:
    class Flaky(Service):
        async def answer(self, text: str) -> dict[str, Any]:
            answer = await super().answer(text)
            if len(self.asked) == 1:
                raise TimeoutError(text)
            return answer

    service = Flaky(pause=0.01)

    async def both(calls: Channel) -> list[Any]:
        made = [calls.call(IDENTITY, "a", 0, lambda: service.answer("a")) for _ in range(2)]
        return await asyncio.gather(*made, return_exceptions=True)

    with channel(folder, Mode.AUTO) as calls:
        failed, answered = asyncio.run(both(calls))
    assert isinstance(failed, TimeoutError)
    assert answered.origin == "live"


def test_a_caller_that_is_cancelled_leaves_the_others_their_answer(folder: Path) -> None:
    service = Service(pause=0.02)

    async def cancel_one(calls: Channel, which: int) -> list[Any]:
        tasks = [asyncio.create_task(calls.call(IDENTITY, "a", 0, lambda: service.answer("a"))) for _ in range(3)]
        await asyncio.sleep(0.01)
        tasks[which].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    for which in (0, 1):  # the one that calls, one that waits
        with channel(folder.with_name(f"{which}.cassette"), Mode.AUTO) as calls:
            outcomes = asyncio.run(cancel_one(calls, which))
        assert isinstance(outcomes.pop(which), asyncio.CancelledError)
        assert all(isinstance(outcome, Recorded) for outcome in outcomes)


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.REPLAY])
def test_a_corrupt_recording_is_an_error_and_never_a_silent_call(folder: Path, mode: Mode) -> None:
    service = Service()
    ask(folder, Mode.AUTO, service, "a", "b")
    for path in folder.glob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'{"said":"a', b'{"said":"A'))
    with pytest.raises(DamagedRecording, match=r"is damaged \(.\.jsonl, line 1: .* --drop"):
        ask(folder, mode, service, "a")
    assert len(service.asked) == 2
    assert ask(folder, mode, service, "b")[0].origin == "replayed"


def test_a_paid_answer_is_kept_where_it_cannot_be_recorded(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.write_text("a file, where a folder should be")
    with caplog.at_level(logging.WARNING):
        answers = ask(folder, Mode.AUTO, Service(), "a", "b")
    assert [answer.recorded for answer in answers] == [False, False]
    assert [record.message.startswith("calls of target are not recorded") for record in caplog.records] == [True]


def test_replay_without_a_cassette_is_one_clear_error(folder: Path) -> None:
    for mode in (Mode.AUTO, Mode.LIVE, Mode.OFF):
        with channel(folder, mode) as calls:
            calls.require()
    with (
        channel(folder, Mode.REPLAY) as calls,
        pytest.raises(RecordingMissingError, match=r"there is no cassette at .*Record one: `rag-eval run"),
    ):
        calls.require()
    assert not folder.exists()


class TestManyCalls:
    """Calls that can share a request."""

    @staticmethod
    def embed(
        folder: Path, mode: Mode, texts: Sequence[str], size: int = 4, bad: str = ""
    ) -> tuple[list[Recorded | Exception], list[list[str]], dict[str, int]]:
        sent: list[list[str]] = []
        calls = [Call(IDENTITY, text) for text in texts]

        async def live(places: Sequence[int]) -> list[dict[str, Any] | Exception]:
            sent.append([calls[place].text for place in places])
            return [ValueError(text) if text == bad else {"text": text} for text in sent[-1]]

        async def made(through: Channel) -> list[Recorded | Exception]:
            return await through.call_many(calls, live, batch_size=size, concurrency=2)

        with channel(folder, mode) as through:
            return asyncio.run(made(through)), sent, dict(through.counts)

    def test_each_distinct_text_is_sent_once_and_recorded_alone(self, folder: Path) -> None:
        outcomes, sent, counts = self.embed(folder, Mode.AUTO, ["a", "b", "a", "c", "d", "e", "b"])
        assert sent == [["a", "b", "c", "d"], ["e"]]
        assert [outcome.output["text"] for outcome in outcomes] == ["a", "b", "a", "c", "d", "e", "b"]
        assert counts == {"live": 5, "recorded": 5}
        _, sent, counts = self.embed(folder, Mode.AUTO, ["e", "f", "a"])
        assert sent == [["f"]]
        assert counts == {"live": 1, "recorded": 1, "replayed": 2}

    def test_live_sends_each_distinct_text_and_off_every_one(self, folder: Path) -> None:
        assert self.embed(folder, Mode.LIVE, ["a", "b", "a"])[1] == [["a", "b"]]
        assert self.embed(folder, Mode.OFF, ["a", "b", "a"])[1] == [["a", "b", "a"]]

    def test_a_text_that_fails_costs_the_others_nothing(self, folder: Path) -> None:
        outcomes, _, counts = self.embed(folder, Mode.AUTO, ["a", "b", "c"], bad="b")
        assert [type(outcome) for outcome in outcomes] == [Recorded, ValueError, Recorded]
        assert counts == {"live": 3, "recorded": 2}

    def test_replay_gives_what_it_has_and_names_the_rest(self, folder: Path) -> None:
        self.embed(folder, Mode.AUTO, ["a"])
        outcomes, sent, counts = self.embed(folder, Mode.REPLAY, ["a", "b"])
        assert [type(outcome) for outcome in outcomes] == [Recorded, MissingRecording]
        assert (sent, counts) == ([], {"replayed": 1, "missing": 1})


def test_notes_come_back_and_are_no_part_of_what_is_compared(folder: Path) -> None:
    async def once(calls: Channel, tokens: int) -> Recorded:
        async def live() -> dict[str, Any]:
            return {"said": "x", "notes": {"tokens": tokens}}

        return await calls.call(IDENTITY, "a", 0, live)

    for mode, tokens in ((Mode.AUTO, 3), (Mode.LIVE, 5), (Mode.REPLAY, 0)):
        with channel(folder, mode) as calls:
            answer = asyncio.run(once(calls, tokens))
    assert answer.output == {"said": "x", "notes": {"tokens": 3}}  # an equal answer replaced nothing
    assert Cassette(folder).get(answer.key).response == {"said": "x"}


def test_the_run_decides_before_the_suite_and_the_suite_before_the_trigger() -> None:
    assert choose_modes(FROM_THE_COMMAND_LINE) == Modes(Mode.AUTO, Mode.AUTO)
    assert choose_modes(ON_A_SCHEDULE) == Modes(Mode.LIVE, Mode.AUTO)
    suite = (Mode.OFF, None)
    assert choose_modes(ON_A_SCHEDULE, suite=suite) == Modes(Mode.OFF, Mode.AUTO)
    assert choose_modes(ON_A_SCHEDULE, suite=suite, both=Mode.REPLAY) == Modes(Mode.REPLAY, Mode.REPLAY)
    both = choose_modes(ON_A_SCHEDULE, suite=suite, both=Mode.REPLAY, target=Mode.AUTO)
    assert both == Modes(Mode.AUTO, Mode.REPLAY)
