"""Whole runs with recordings: what is called in each mode, by the server's count, and what equal runs share."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.cli.run import result_json, unmet
from rag_eval_assets.errors import QualityError, RecordingMissingError
from rag_eval_assets.orchestration.execute import Executed, execute
from rag_eval_assets.progress import SILENT
from rag_eval_assets.recording.cassette import review
from rag_eval_assets.recording.modes import Mode, Modes
from rag_eval_assets.report.recompute import recompute
from rag_eval_assets.suite.load import LoadedSuite, read_suite
from rag_eval_assets_tests.servers.loopback import LoopbackServer, Reply, Request

DATE = "2026-03-01"
KEY = "sk-quite-secret-9876543210"
ROWS = [{"question": f"Question {number}?", "answer": f"Answer {number}."} for number in range(3)]


def service(request: Request) -> Reply:
    """A RAG service, a chat and embeddings; each answers by a hash of what it is asked."""
    content = request.json()
    if request.path.endswith("/embeddings"):
        digests = [hashlib.sha256(text.encode()).digest() for text in content["input"]]
        return Reply(body={"data": [{"embedding": [byte / 256 for byte in digest[:6]]} for digest in digests]})
    if request.path.endswith("/chat/completions"):
        return Reply(body={"choices": [{"message": {"content": f"Chat on {content['messages'][-1]['content']}"}}]})
    return Reply(body={"answer": f"On {content['question']}"})


@dataclass
class Place:
    """A suite over the service, its home, and runs of it in this process."""

    folder: Path
    server: LoopbackServer
    targets: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        url = self.server.url
        answer = {"answer": "/answer"}
        self.targets = {
            "rag": {
                "type": "http",
                "url": f"{url}/query",
                "body": {"question": "{question}"},
                "headers": {"Authorization": {"env": "SERVICE_KEY", "prefix": "Bearer "}},
                "response": answer,
            },
            "chat": {"type": "openai-compatible", "url": f"{url}/v1", "model": "talker", "api_key_env": "SERVICE_KEY"},
            "echo": {"type": "shell", "command": ["cat"]},
        }

    def suite(self, *targets: str, **changes: Any) -> LoadedSuite:
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        scorer = {"type": "similarity", "url": f"{self.server.url}/v1", "model": "embed", "api_key_env": "SERVICE_KEY"}
        content = {
            "datasets": [{"file": "rows.jsonl"}],
            "targets": {name: self.targets[name] for name in targets},
            "scorers": [{**scorer, "threshold": -1}],
            **changes,
        }
        path = self.folder / "suite.yaml"
        path.write_text(yaml.safe_dump(content))
        return read_suite(path)

    def run(self, suite: LoadedSuite, mode: Mode, date: str = DATE) -> Executed:
        done = execute(suite, date, reporter=SILENT, targets=list(suite.suite.targets), modes=Modes(mode, mode))
        assert not done.failures
        return done

    @property
    def cassette(self) -> dict[str, tuple[bytes, int]]:
        files = [path for path in (self.folder / "suite.cassette").iterdir() if path.is_file()]
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    def everything(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())

    def tables(self) -> dict[str, bytes]:
        """The stored tables that equal runs have in common."""
        files = (self.folder / "home" / "tables").rglob("*.parquet")
        apart = ("call_log", "similarity_calls", "eval_report", "score_history")
        return {str(path): path.read_bytes() for path in files if not any(name in path.parts for name in apart)}


@pytest.fixture
def place(serve: Callable[..., LoopbackServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("RAG_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("SERVICE_KEY", KEY)
    return Place(tmp_path, serve(service))


def hashes(done: Executed) -> list[str]:
    return [written.report.content_sha256 for written in done.reports]


def parquets(done: Executed) -> list[bytes]:
    return [written.json_path.with_suffix(".parquet").read_bytes() for written in done.reports]


def test_recorded_once_a_suite_replays_offline_keyless_and_identical(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = place.suite("rag")
    recorded = place.run(suite, Mode.AUTO)
    asked = len(place.server.requests)
    assert asked == 3 + 6  # questions; references and answers
    assert result_json(recorded.reports)["calls"]["recorded"] == 9
    cassette, tables = place.cassette, place.tables()
    again = place.run(suite, Mode.AUTO)
    assert len(place.server.requests) == asked
    place.server.stop()
    monkeypatch.delenv("SERVICE_KEY")
    replayed = place.run(suite, Mode.REPLAY)
    calls = result_json(replayed.reports)["calls"]
    assert (calls["live"], calls["replayed"], calls["recorded"], calls["missing"]) == (0, 9, 0, 0)
    assert hashes(recorded) == hashes(again) == hashes(replayed)
    assert parquets(recorded) == parquets(again) == parquets(replayed)
    assert place.tables() == tables
    assert place.cassette == cassette
    assert KEY.encode() not in place.everything()


def test_live_asks_all_again_and_off_touches_nothing(place: Place) -> None:
    suite = place.suite("rag")
    place.run(suite, Mode.AUTO)
    cassette = place.cassette
    place.run(suite, Mode.OFF)
    assert len(place.server.requests) == 18
    assert place.cassette == cassette
    place.run(suite, Mode.LIVE, "2026-03-02")
    assert len(place.server.requests) == 27
    assert place.run(suite, Mode.REPLAY).reports[0].report.run.calls.replayed == 3


def test_replay_beside_a_running_server_sends_nothing_whatever_the_target(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = place.suite("rag", "chat", "echo")
    recorded = place.run(suite, Mode.AUTO)
    asked = len(place.server.requests)
    tried: list[Any] = []

    def refuse(self: socket.socket, address: Any) -> None:
        tried.append(address)
        raise PermissionError("blocked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    replayed = place.run(suite, Mode.REPLAY)
    assert (len(place.server.requests), tried) == (asked, [])
    assert hashes(replayed) == hashes(recorded)
    notes = {written.report.target: written.report.notes for written in replayed.reports}
    assert any("unreplayable" in note for note in notes["echo"])


def test_a_call_without_recording_is_a_row_that_says_so_and_exit_code_4(place: Place) -> None:
    place.run(place.suite("rag"), Mode.AUTO)
    asked = len(place.server.requests)
    ROWS.append({"question": "A new question?", "answer": "Answer 1."})
    try:
        suite = place.suite("rag")
    finally:
        ROWS.pop()
    done = place.run(suite, Mode.REPLAY)
    assert len(place.server.requests) == asked
    missing, quality = unmet(suite, done.reports)
    assert isinstance(missing, RecordingMissingError)
    assert "1 call has no recording" in str(missing)
    assert "`rag-eval run suite.yaml --cache auto`" in str(missing)
    assert isinstance(quality, QualityError)
    assert "recording_missing: example 'row-3'" in str(done.reports[0].report.examples[3].error)


def test_replay_without_a_cassette_stops_before_anything(place: Place) -> None:
    suite = place.suite("rag")
    done = execute(suite, DATE, reporter=SILENT, targets=["rag"], modes=Modes(Mode.REPLAY, Mode.REPLAY))
    assert [type(failure) for failure in done.failures] == [RecordingMissingError]
    assert "there is no cassette at" in str(done.failures[0])
    assert place.server.requests == []


def test_a_threshold_that_is_not_reached_is_a_quality_failure_unless_the_suite_only_reports(place: Place) -> None:
    scorer = {"type": "similarity", "url": f"{place.server.url}/v1", "model": "embed", "threshold": 1}
    suite = place.suite("echo", scorers=[scorer])
    done = place.run(suite, Mode.AUTO)
    report = done.reports[0].report
    assert (report.gates.outcome, report.answer_similarity_summary.metrics()["similarity"].pass_rate) == ("fail", 0.0)
    assert recompute(done.reports[0].json_path).equal
    (error,) = unmet(suite, done.reports)
    assert (type(error), error.exit_code) == (QualityError, 1)
    assert "echo: all_pass is not met: 3 of 3 examples do not pass" in str(error)
    only_reports = place.suite("echo", scorers=[scorer], run={"policy": "report"})
    told = place.run(only_reports, Mode.AUTO)
    assert unmet(only_reports, told.reports) == []
    assert told.reports[0].report.gates.outcome == "none"
    assert told.reports[0].report.answer_similarity_summary.metrics()["similarity"].pass_rate == 0.0


def test_two_similarity_scorers_with_names_of_their_own_stand_side_by_side(place: Place) -> None:
    scorer = {"type": "similarity", "url": f"{place.server.url}/v1", "threshold": 0.5}
    scorers = [{**scorer, "name": "small", "model": "s"}, {**scorer, "name": "large", "model": "l", "batch_size": 2}]
    done = place.run(place.suite("echo", scorers=scorers), Mode.AUTO)
    report = done.reports[0].report
    assert {"small", "large"} <= set(report.answer_similarity_summary.metrics())
    assert [verdict.scorer for verdict in report.examples[0].scores] == ["small", "large"]
    assert report.run.scorer_calls["small"].requests == 6
    assert report.run.scorer_calls["large"].requests < 6
    assert report.models.model_dump()["large"]["threshold"] == 0.5


def test_the_suite_says_where_its_recordings_lie(place: Place) -> None:
    place.run(place.suite("echo", cache={"folder": "taped/here"}), Mode.AUTO)
    assert len(review.entries_of(place.folder / "taped" / "here")) == 6
    assert not (place.folder / "suite.cassette").exists()
