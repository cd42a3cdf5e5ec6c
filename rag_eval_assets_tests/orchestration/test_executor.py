"""`RAG_EVAL_EXECUTOR`, and a run in which every step has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.orchestration.instance import PID_TAG, dagster_home, shared_instance

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("named", "executor"),
    [(None, "in_process"), ("", "in_process"), ("in_process", "in_process"), ("multiprocess", "multiprocess")],
)
def test_the_environment_names_the_executor(place, monkeypatch, named: str | None, executor: str) -> None:
    if named is not None:
        monkeypatch.setenv("RAG_EVAL_EXECUTOR", named)
    definitions = build_definitions([place.suite()])
    assert definitions.resolve_job_def("tiny_evaluation").executor_def.name == executor


@pytest.mark.parametrize(
    ("named", "why"),
    [
        (
            "k8s",
            "tables lie in a local folder, which pods do not share. Put the tables into a bucket with RAG_EVAL_TABLES",
        ),
        ("celery", "RAG_EVAL_EXECUTOR is 'celery'. Use one of in_process, multiprocess, k8s"),
    ],
)
def test_what_cannot_work_is_refused_when_the_location_loads(place, monkeypatch, named: str, why: str) -> None:
    monkeypatch.setenv("RAG_EVAL_EXECUTOR", named)
    with pytest.raises(ConfigurationError) as caught:
        build_definitions([place.suite()])
    assert why in str(caught.value)


def test_steps_in_processes_of_their_own_write_the_same_tables(place) -> None:
    suite = place.suite()
    assert place.materialize(suite, ["corpus"]).success
    before = place.files("tables")
    dagster_home(place.home)
    arguments = ["-m", "rag_eval_assets.definitions", "--select", "key:tiny/corpus", "--partition", "2026-03-01"]
    result = subprocess.run(
        [sys.executable, "-m", "dagster", "asset", "materialize", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAG_EVAL_SUITES": str(suite.path),
            "RAG_EVAL_EXECUTOR": "multiprocess",
            "DAGSTER_DISABLE_TELEMETRY": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert place.files("tables") == before
    with shared_instance(place.home) as instance:
        (run,) = instance.get_runs()
        events = instance.all_logs(run.run_id)
        (check,) = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    assert run.status == dg.DagsterRunStatus.SUCCESS
    assert check.get_dagster_event().asset_check_evaluation_data.partition == "2026-03-01"
    executing = {event.get_dagster_event().pid for event in events if is_kind(event, dg.DagsterEventType.RUN_START)}
    stepping = {event.get_dagster_event().pid for event in events if is_kind(event, dg.DagsterEventType.STEP_START)}
    assert {int(run.tags[PID_TAG])} == executing
    assert len(stepping) == 2, "the asset and its check, a process each"
    assert not executing & stepping


def is_kind(event: dg.EventLogEntry, kind: dg.DagsterEventType) -> bool:
    return event.is_dagster_event and event.get_dagster_event().event_type == kind
