"""What `rag-eval run` prints, where, and what it leaves on the disk."""

from __future__ import annotations

import datetime as dt
import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.invocation import check_run_date, check_targets
from rag_eval_assets.suite.load import load_suite

OF_A_REPORT = {"target", "run_id", "report", "summary", "counts"}
OF_A_RUN = {"reports", "seconds", "calls"}
NONE = {"live": 0, "journal": 0, "replayed": 0, "recorded": 0, "missing": 0, "kept": 0}
NO_CALLS = {**NONE, "target": NONE, "embeddings": NONE}


def test_json_is_one_object_on_stdout_and_nothing_else(evaluated) -> None:
    (line,) = evaluated.process.stdout.splitlines()
    assert json.loads(line) == evaluated.result
    assert set(evaluated.result) >= OF_A_RUN


def test_json_lists_every_target_and_has_no_summary_of_its_own_where_there_are_two(evaluated) -> None:
    assert [entry["target"] for entry in evaluated.result["reports"]] == ["first", "second"]
    assert all(set(entry) >= OF_A_REPORT for entry in evaluated.result["reports"])
    assert not (OF_A_REPORT & set(evaluated.result))


def test_json_says_what_the_reports_say(evaluated) -> None:
    for entry in evaluated.result["reports"]:
        report = json.loads(Path(entry["report"]).read_text())
        assert (entry["run_id"], entry["target"]) == (report["run_id"], report["target"])
        assert entry["content_sha256"] == report["content_sha256"]
        assert entry["counts"] == report["counts"]
        assert entry["counts"]["attempted"] == 3
        assert entry["summary"] == {name: report[name] for name in entry["summary"]}
        assert set(entry["summary"]) == {"retrieval_summary", "answer_similarity_summary"}


def test_json_counts_calls_over_all_targets_and_times_each_stage_once(evaluated) -> None:
    assert evaluated.result["calls"] == {**NO_CALLS, "live": 6, "target": {**NONE, "live": 6}}
    seconds = evaluated.result["seconds"]
    assert {"corpus", "eval_examples", "first/generated_answers", "second/sentence_cosine"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())


def test_a_short_run_that_goes_well_says_nothing_on_stderr_but_progress(evaluated) -> None:
    lines = evaluated.process.stderr.splitlines()
    assert [line for line in lines if not re.fullmatch(r"\w+: \d+ of \d+ \w+, about \d+ s left", line)] == []


def test_reports_lie_under_the_home_by_run_date(evaluated) -> None:
    today = dt.datetime.now(dt.UTC).date()
    found = evaluated.report.relative_to(evaluated.place.home / "reports")
    days = {f"dev/eval-runs/{day:%Y/%m/%d}" for day in (today, today - dt.timedelta(days=1))}
    assert found.parent.as_posix() in days


def test_a_sample_of_one_target_on_a_terminal(evaluated) -> None:
    """Bars go to the terminal that stderr is, the JSON to stdout, and the whole evaluation's files stay as they are."""
    place = evaluated.place
    tables = place.home / "tables"
    before = {path: path.read_bytes() for path in sorted((tables / "harbour").rglob("*.parquet"))}
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        place.command("run", evaluated.suite, "--target", "second", "--limit", "2", "--json"),
        cwd=place.folder,
        env=place.environment(TERM="xterm-256color", COLUMNS="100"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    ) as process:
        os.close(theirs)
        shown = read_all(terminal)
        assert process.stdout is not None
        result = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert set(result) >= OF_A_REPORT | OF_A_RUN
    assert (result["target"], result["counts"]["attempted"]) == ("second", 2)
    assert result["reports"] == [{name: result[name] for name in result["reports"][0]}]
    for stage in ("starting", "generated_answers", "sentence_cosine"):
        assert stage in shown
    assert "━" in shown
    assert "2/2" in shown
    assert "\x1b" in shown, "a bar is redrawn in place"
    assert {path: path.read_bytes() for path in sorted((tables / "harbour").rglob("*.parquet"))} == before
    assert sorted(path.name for path in (tables / "harbour~sample").iterdir()) == ["corpus", "eval_examples", "second"]
    assert list((tables / "harbour~sample").rglob("score_history")) == []


def read_all(terminal: int) -> str:
    """What is written to a terminal until its other side is closed, which Linux tells as an input/output error."""
    parts: list[bytes] = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:
        pass
    os.close(terminal)
    return b"".join(parts).decode()


def test_failure_is_one_json_object_too(place) -> None:
    process = place.run("run", place.suite(scorers=[{"type": "bertscor"}]), "--json")
    assert process.returncode == 2
    (line,) = process.stdout.splitlines()
    result = json.loads(line)
    assert {name: result[name] for name in OF_A_RUN} == {"reports": [], "seconds": {}, "calls": NO_CALLS}
    assert result["exit_code"] == 2
    assert process.stderr == f"error: {result['error']}\n"


def test_a_home_that_cannot_be_made_is_an_infrastructure_fault(place, weights) -> None:
    (place.folder / "file").write_text("")
    process = place.run("run", place.suite(), "--json", RAG_EVAL_HOME=str(place.folder / "file"))
    assert process.returncode == 3
    assert json.loads(process.stdout)["exit_code"] == 3
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")
    assert "RAG_EVAL_HOME" in line


@pytest.mark.parametrize("given", ["yesterday", "2026-1-1", "2026-02-30", "01.02.2026", ""])
def test_what_is_no_date_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match="Give a date as YYYY-MM-DD"):
        check_run_date(load_suite("embedded"), given)


def test_dates_from_the_suites_first_to_today_are_run_dates() -> None:
    suite = load_suite("embedded")
    first, today = suite.suite.run.start_date, dt.datetime.now(dt.UTC).date()
    assert check_run_date(suite, first.isoformat()) == first.isoformat()
    assert check_run_date(suite, today.isoformat()) == today.isoformat()
    with pytest.raises(ConfigurationError, match=f"lies before the suite's first run date {first}"):
        check_run_date(suite, (first - dt.timedelta(days=1)).isoformat())
    with pytest.raises(ConfigurationError, match="lies in the future"):
        check_run_date(suite, (today + dt.timedelta(days=2)).isoformat())


def test_without_a_date_it_is_today_in_utc() -> None:
    before = dt.datetime.now(dt.UTC).date()
    assert check_run_date(load_suite("embedded"), None) in {
        before.isoformat(),
        dt.datetime.now(dt.UTC).date().isoformat(),
    }


def test_an_unknown_target_is_answered_with_the_nearest_or_with_all() -> None:
    suite = load_suite("embedded")
    assert check_targets(suite, None) == ["pipeline"]
    with pytest.raises(ConfigurationError, match="Did you mean 'pipeline'"):
        check_targets(suite, ["pipelin"])
    with pytest.raises(ConfigurationError, match="Its targets: pipeline"):
        check_targets(suite, ["xyz"])
