"""Runs against a real service that are killed without warning: nothing that was journalled is asked again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONCURRENCY = 4
TARGET = {
    "type": "http",
    "body": {"question": "{question}"},
    "response": {"answer": "/answer", "passages": {"list": "/passages"}},
}


def suite_against(place: Any, url: str, questions: int) -> str:
    place.rows([(f"How many boats has harbour {n}?", f"It has {n}.", f"Harbour {n} is old.") for n in range(questions)])
    return place.suite(
        targets={"service": {**TARGET, "url": f"{url}/query"}},
        scorers=[{"type": "similarity", "url": f"{url}/v1", "model": "light", "threshold": -1.0, "batch_size": 64}],
        run={"concurrency": CONCURRENCY},
        cache={"target": "off", "embeddings": "off"},  # the journal alone has to do it
    )


def journalled(place: Any) -> list[str]:
    files = list((place.home / "journals").rglob("*.jsonl"))
    return files[0].read_bytes().split(b"\n")[:-1] if files else []


def killed_when(place: Any, command: list[str], ready: Callable[[], bool]) -> bool:
    """Whether SIGKILL ended the command, sent as soon as `ready`."""
    output = (place.folder / "killed.txt").open("a")
    with (
        output,
        subprocess.Popen(
            place.command(*command), cwd=place.folder, env=place.environment(), stdout=output, stderr=output
        ) as running,
    ):
        deadline = time.monotonic() + 120
        while running.poll() is None and not ready() and time.monotonic() < deadline:
            time.sleep(0.002)
        running.kill()
    return running.returncode == -signal.SIGKILL


def content(done: subprocess.CompletedProcess[str]) -> tuple[str, dict[str, int]]:
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return result["content_sha256"], result["calls"]


def check_kills(make_place: Any, tmp_path: Path, rag_service: Any, questions: int, moments: list[int]) -> None:
    service = rag_service("--light", "--latency-ms", "40")
    place = make_place(tmp_path)
    suite = suite_against(place, service.url, questions)
    kept: set[bytes] = set()
    resume: list[str] = []
    for kills, moment in enumerate(moments, start=1):
        assert killed_when(place, ["run", suite, *resume], lambda moment=moment: service.requests() >= moment)
        lines = journalled(place)
        assert kept <= set(lines)  # no answer is ever lost
        kept = set(lines)
        # Every request was either journalled, or one of those that a kill found under way.
        assert service.requests() <= len(kept) + kills * CONCURRENCY
        resume = ["--resume"]
    before = service.stats()["bodies"]["/query"]
    disturbed, calls = content(place.run("run", suite, "--json", *resume))
    after = service.stats()["bodies"]["/query"]
    assert calls["journal"] == len(kept)
    assert sum(after.values()) - sum(before.values()) == questions - len(kept)
    assert len(after) == questions
    again = [body for body, times in after.items() if times > 1]
    assert len(again) <= sum(after.values()) - questions <= len(moments) * CONCURRENCY
    # As many bodies stayed untouched by the last run as answers were journalled.
    assert sum(times == after[body] for body, times in before.items()) == len(kept)

    undisturbed = make_place(tmp_path / "undisturbed")
    undisturbed.folder.mkdir()
    same = suite_against(undisturbed, service.url, questions)
    whole, calls = content(undisturbed.run("run", same, "--json"))
    assert (calls["journal"], whole) == (0, disturbed)


def test_three_kills_repeat_no_journalled_answer_and_change_no_figure(make_place, tmp_path: Path, rag_service) -> None:
    check_kills(make_place, tmp_path, rag_service, 60, [7, 25, 44])


@pytest.mark.soak
def test_twenty_kills_at_random_moments(make_place, tmp_path: Path, rag_service) -> None:
    moments = sorted(random.Random(20).sample(range(2, 390), 20))
    check_kills(make_place, tmp_path, rag_service, 400, moments)


def test_a_dead_server_ends_the_run_after_twenty_like_failures_and_commits_nothing(
    make_place, tmp_path: Path, serve, reply
) -> None:
    server = serve(reply())
    server.stop()
    place = make_place(tmp_path)
    suite = suite_against(place, server.url, 60)
    text = (place.folder / suite).read_text().replace("body:", "max_retries: 0\n    body:")
    (place.folder / suite).write_text(text)
    done = place.run("run", suite, "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["exit_code"], result["reports"]) == (3, 3, [])
    assert "the first 20 calls all failed (transport)" in result["error"]
    assert "cannot be reached" in result["error"]
    assert not list((place.home / "tables").rglob("generated_answers/*/*.parquet"))
