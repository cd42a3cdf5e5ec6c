"""Ctrl-C while a target is asked: a clean end, and the next run goes on from there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_eval_assets.cli import run
from rag_eval_assets.cli.app import app
from rag_eval_assets.orchestration.execute import RunInterrupted

QUESTIONS = 60


@pytest.fixture(scope="module")
def interrupted(
    tmp_path_factory: pytest.TempPathFactory, make_place: Callable[[Path], Any], weights: Path
) -> tuple[Any, str, subprocess.Popen[str], str, str, int]:
    """A run that was stopped once the journal held some answers, and how many it holds now."""
    place = make_place(tmp_path_factory.mktemp("interrupted"))
    place.rows(
        [(f"How deep is well number {n}?", f"{n} metres.", f"Well {n} is {n} metres deep.") for n in range(QUESTIONS)]
    )
    suite = place.suite()
    process = subprocess.Popen(
        place.command("run", suite, "--json"),
        cwd=place.folder,
        env=place.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 240
    while journalled(place) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the helpers that Dagster has started, too
    out, err = process.communicate(timeout=300)
    return place, suite, process, out, err, journalled(place)


def journalled(place: Any) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (place.home / "journals").rglob("*.jsonl"))


def test_it_ends_with_130_and_one_line(interrupted) -> None:
    _, _, process, out, err, _ = interrupted
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped; the same command with --resume goes on from here"
    assert "Traceback" not in err
    assert "error" not in err
    result = json.loads(out)
    assert (result["reports"], result["error"], result["exit_code"]) == ([], "stopped", 130)


def test_it_stops_at_once_and_not_after_the_last_question(interrupted) -> None:
    *_, kept = interrupted
    assert 3 <= kept < QUESTIONS


def test_nothing_of_the_stage_was_stored(interrupted) -> None:
    place, *_ = interrupted
    assert list((place.home / "tables").rglob("generated_answers")) == []
    assert not (place.home / "reports").exists()


def test_the_next_run_asks_only_what_was_not_answered(interrupted) -> None:
    place, suite, *_, kept = interrupted
    process = place.run("run", suite, "--resume", "--json")
    assert process.returncode == 0
    progress = re.compile(r"generated_answers: \d+ of \d+ ")  # shown where a stage takes longer than two seconds
    assert [line for line in process.stderr.splitlines() if not progress.match(line)] == [
        "resuming: 2 of 7 assets kept (corpus, eval_examples)",
        f"{kept} answers of a run that was stopped taken over, and not asked for again",
    ]
    (path,) = (place.home / "reports").rglob("*.json")
    report = json.loads(path.read_text())
    expected = {"live": QUESTIONS - kept, "journal": kept, "replayed": 0, "recorded": 0}
    assert expected.items() <= report["run"]["calls"].items()
    assert report["counts"]["answered"] == QUESTIONS
    assert journalled(place) == 0


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (KeyboardInterrupt, "stopped; nothing was begun that could be gone on with: give the same command again"),
        (RunInterrupted, "stopped; the same command with --resume goes on from here"),
    ],
)
def test_a_resume_is_promised_only_where_there_is_a_run_to_go_on_with(
    moment: type[BaseException], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise moment

    said: list[str] = []
    monkeypatch.setattr(run, "run_request", stopped)
    monkeypatch.setattr(run, "_tell", said.append)
    assert CliRunner().invoke(app, ["run", "--limit", "1"]).exit_code == 130
    assert said == [told]
