"""`rag-eval run --only-failed`: what failed is asked again, what was answered is kept, and everything is scored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

QUESTIONS = 12
FAILING = {"question 3", "question 7"}


@dataclass
class Mended:
    """A service of which some questions fail until it is mended, and a suite against it."""

    place: Any
    suite: str
    server: Any
    broken: bool = True

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        done = self.place.run("run", self.suite, "--json", "--run-date", "2026-01-05", *arguments)
        return done.returncode, json.loads(done.stdout)

    def asked(self) -> list[str]:
        bodies = [request.json() for request in self.server.requests]
        return [body["question"] for body in bodies if "question" in body]

    def call_log(self) -> dict[str, tuple[str, Any]]:
        (path,) = (self.place.home / "tables").rglob("call_log/*/*.parquet")
        return {row["example_id"]: (row["origin"], row["answered_at"]) for row in pq.read_table(path).to_pylist()}


@pytest.fixture
def mended(make_place, tmp_path: Path, serve, reply) -> Mended:
    place = make_place(tmp_path)
    lines = [{"id": f"e{n}", "question": f"question {n}", "answer": f"answer {n}"} for n in range(QUESTIONS)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))

    def answer(request: Any) -> Any:
        body = request.json()
        if "input" in body:
            return reply(200, {"data": [{"index": i, "embedding": [len(t), 1.0]} for i, t in enumerate(body["input"])]})
        failing = found.broken and body["question"] in FAILING
        return reply(500) if failing else reply(200, {"answer": f"to {body['question']}"})

    server = serve(answer)
    target = {
        "type": "http",
        "url": server.url,
        "body": {"question": "{question}"},
        "response": {"answer": "/answer"},
        "max_retries": 0,
    }
    scorer = {"type": "similarity", "url": server.url, "model": "m", "threshold": -1.0, "batch_size": 50}
    suite = place.suite(
        targets={"service": target},
        scorers=[scorer],
        cache={"target": "off", "embeddings": "off"},
        corpus={"source": "sample"},
    )
    found = Mended(place, suite, server)
    return found


def test_only_what_failed_is_asked_again_and_the_report_is_that_of_a_run_without_failures(mended: Mended) -> None:
    code, first = mended.run()
    assert (code, first["counts"]["errored"]) == (1, 2)  # the policy of a suite with a threshold is all_pass
    assert len(mended.asked()) == QUESTIONS
    before = mended.call_log()

    mended.broken = False
    code, second = mended.run("--only-failed")
    assert (code, second["counts"]["errored"], second["counts"]["answered"]) == (0, 0, QUESTIONS)
    assert sorted(mended.asked()[QUESTIONS:]) == sorted(FAILING)
    assert second["run_id"] != first["run_id"]
    after = mended.call_log()
    assert {origin for origin, _ in after.values()} == {"live", "kept"}
    assert sum(origin == "kept" for origin, _ in after.values()) == QUESTIONS - 2
    assert all(at == before[example][1] for example, (origin, at) in after.items() if origin == "kept")

    code, refused = mended.run("--only-failed")
    assert code == 2
    assert "there is nothing to ask again" in refused["error"]

    code, whole = mended.run()
    assert whole["content_sha256"] == second["content_sha256"]


def test_changed_settings_or_data_are_refused_before_anything_is_asked(mended: Mended) -> None:
    assert mended.run("--only-failed")[0] == 2  # the date has no answers yet
    mended.run()
    asked = len(mended.server.requests)
    suite, rows = mended.place.folder / mended.suite, mended.place.folder / "rows.jsonl"
    text = suite.read_text()

    suite.write_text(text.replace("{question}", "Q: {question}"))
    code, result = mended.run("--only-failed")
    assert (code, "settings have changed" in result["error"]) == (2, True)

    suite.write_text(text)
    rows.write_text(rows.read_text().replace("question 5", "question five"))
    code, result = mended.run("--only-failed")
    assert (code, "has changed since" in result["error"]) == (2, True)
    assert len(mended.server.requests) == asked


@pytest.mark.parametrize("other", ["--resume", "--limit=3"])
def test_it_goes_with_neither_a_sample_nor_a_resumed_run(mended: Mended, other: str) -> None:
    code, result = mended.run("--only-failed", other)
    assert (code, "are both given" in result["error"]) == (2, True)
