"""Answers with `RAG_EVAL_JOURNAL=s3`: another machine goes on where one stopped, and S3 may be away meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_eval_assets.cli.app import app
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation import journals, preflight, stages
from rag_eval_assets.evaluation.context import Evaluation, Outcome
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration import tables_bucket
from rag_eval_assets.orchestration.tables import open_store
from rag_eval_assets.progress import LogReporter

JOURNAL = "qa/tables/.journals/tiny/pipeline/2026-03-01/"
MAY = (
    ("s3:GetObject", "/qa/tables/*"),
    ("s3:PutObject", "/qa/tables/*"),
    ("s3:ListBucket", ""),
    ("s3:DeleteObject", "/qa/tables/.journals/*"),
)


def in_the_bucket(reports, patch: pytest.MonkeyPatch) -> Any:
    """The settings of a run with tables and journal in the bucket."""
    reports.allow(*MAY)
    patch.setenv("RAG_EVAL_TABLES", f"s3://{reports.bucket}/qa/tables")
    patch.setenv("RAG_EVAL_JOURNAL", "s3")
    return reports


@pytest.fixture
def stored(reports, monkeypatch: pytest.MonkeyPatch) -> Any:
    return in_the_bucket(reports, monkeypatch)


@pytest.fixture
def answer(tmp_path: Path, place) -> Callable[..., Outcome]:
    """`answer(suite, machine)` materializes `generated_answers`, and what it reads, from a home of that name."""

    def run(suite: Any, machine: str, tell: Callable[[str], None] = lambda _: None) -> Outcome:
        home = Home(tmp_path / machine)
        evaluation = Evaluation(suite, "2026-03-01", home, open_store(home, suite), reporter=LogReporter(tell))
        stages.make_corpus(evaluation)
        stages.make_examples(evaluation)
        place.calls.clear()
        return stages.make_answers(evaluation, "pipeline")

    return run


def journal(reports) -> list[str]:
    return [key for key in reports.objects() if key.startswith(JOURNAL)]


def test_another_machine_asks_only_what_was_not_answered(place, village, stored, answer) -> None:
    suite = place.suite(run={"concurrency": 1, "max_error_rate": 0.0})
    place.replies["Where are the hives?"] = RuntimeError("the service is down")
    with pytest.raises(InfrastructureError, match="1 of 4 calls have failed"):
        answer(suite, "one")
    assert len(place.calls) == 4
    assert len(journal(stored)) == 1

    place.replies.clear()
    done = answer(suite, "another")
    assert place.calls == ["Where are the hives?"], "what the first machine was answered is not paid for again"
    assert done.counts["ok"] == 4
    assert done.notes["calls"] == "3 journal, 1 live"
    assert journal(stored) == [], "a date that is stored needs no journal"
    # The first machine evaluates the date anew: what it kept itself was stored by the other one.
    assert answer(suite, "one").notes["calls"] == "4 live"
    assert sorted(place.calls) == sorted(row["question"] for row in village.ROWS)
    assert journal(stored) == []


class StopsTheServer(dict[str, str]):
    """The replies of a target; with the second question S3 goes away."""

    def __init__(self, server: Any) -> None:
        self.server = server

    def get(self, key: str, default: Any = None) -> Any:
        if key == "Who keeps the bees?":
            self.server.stop()
        return default


def test_where_s3_goes_away_the_run_goes_on_and_what_it_was_answered_is_kept_here(
    place, own_reports, answer, monkeypatch
) -> None:
    for module in (journals, tables_bucket):  # what is away is asked once
        monkeypatch.setattr(module, "ATTEMPTS", 1)
    in_the_bucket(own_reports, monkeypatch)
    suite, lines = place.suite(run={"concurrency": 1}), []
    place.replies = StopsTheServer(own_reports.server)
    with pytest.raises(InfrastructureError, match=r"s3:PutObject on s3://.*/call_log/.* failed: unreachable"):
        answer(suite, "one", lines.append)
    assert len(place.calls) == 4, "every question was asked, though nothing could be put from the second on"
    (warning,) = [line for line in lines if "journal" in line]
    assert warning.startswith(
        f"warning: the journal does not reach the bucket (s3:PutObject on s3://{own_reports.bucket}"
    )

    own_reports.server.start()
    own_reports.server.bucket(own_reports.bucket)
    own_reports.allow(*MAY)
    place.replies = {}
    assert answer(suite, "one").notes["calls"] == "4 journal"
    assert place.calls == [], "no question is asked again"
    assert journal(own_reports) == []


@pytest.mark.parametrize(
    ("tables", "journal", "message"),
    [
        (None, "s3", r"RAG_EVAL_JOURNAL is 's3', and the tables lie in a local folder\b.* RAG_EVAL_TABLES"),
        ("s3://rag-eval-tables/qa/tables", "bucket", r"RAG_EVAL_JOURNAL is 'bucket': .*'local' or 's3'.* Correct it"),
    ],
)
def test_a_journal_that_cannot_be_is_refused_before_anything_is_asked(
    place, no_aws, tables: str | None, journal: str, message: str
) -> None:
    suite = place.suite()
    no_aws.setattr(preflight, "model_needs", lambda suite, **_: [])
    no_aws.setenv("RAG_EVAL_JOURNAL", journal)
    if tables is not None:
        no_aws.setenv("RAG_EVAL_TABLES", tables)
    looked = CliRunner().invoke(app, ["validate", str(suite.path)])
    assert looked.exit_code == 2
    assert re.search(message, " ".join(looked.stdout.split()))
    run = CliRunner().invoke(app, ["run", str(suite.path), "--json"])
    assert run.exit_code == 2
    assert re.search(message, json.loads(run.stdout)["error"])
    assert place.calls == []
    assert not place.home.tables.exists()


def test_a_run_that_dagster_starts_is_refused_too(place, no_aws) -> None:
    no_aws.setenv("RAG_EVAL_JOURNAL", "s3")
    result = place.materialize(place.suite(), ["corpus", "eval_examples"])
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert failed.step_key == "tiny__eval_examples"
    assert "RAG_EVAL_JOURNAL is 's3'" in failed.step_failure_data.error.cause.message


def test_validate_says_where_the_journals_lie(place, stored, monkeypatch) -> None:
    monkeypatch.setattr(preflight, "model_needs", lambda suite, **_: [])
    done = CliRunner().invoke(app, ["validate", str(place.suite().path)])
    assert done.exit_code == 0
    assert f"found    journal: s3://{stored.bucket}/qa/tables/.journals/" in done.stdout
