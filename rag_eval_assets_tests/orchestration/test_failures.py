"""How failures are told: to Dagster as one clear failure, to the command line as an error with an exit code."""

from __future__ import annotations

import dagster as dg
import pytest

from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.evaluation import stages
from rag_eval_assets.orchestration import lineage
from rag_eval_assets.orchestration.assets import failures_reported
from rag_eval_assets.orchestration.instance import shared_instance

BROKEN = ConfigurationError("column 'question' is missing", fix="Map another column")
DOWN = InfrastructureError("the disk is full", fix="Free some space")


def raising(error: BaseException):
    def make(*arguments: object) -> None:
        raise error

    return make


@pytest.mark.parametrize(("error", "tries"), [(BROKEN, 1), (DOWN, 2)])
def test_only_what_may_pass_is_tried_again(error: Exception, tries: int) -> None:
    tried: list[str] = []

    @dg.op(retry_policy=dg.RetryPolicy(max_retries=1))
    def step() -> None:
        tried.append("step")
        with failures_reported():
            raise error

    @dg.job
    def trying() -> None:
        step()

    result = trying.execute_in_process(raise_on_error=False)
    assert len(tried) == tries
    (failed,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert failed.user_failure_data.description == str(error)


@pytest.mark.parametrize(("error", "code"), [(BROKEN, 2), (DOWN, 3)])
def test_the_command_line_gets_the_error_itself(place, monkeypatch, error: Exception, code: int) -> None:
    monkeypatch.setattr(stages, "make_corpus", raising(error))
    done = place.execute(place.suite(), limit=2)
    assert done.failures == [error]
    assert done.failures[0].exit_code == code
    assert done.reports == []


def test_a_bug_is_told_with_its_step_and_message(place, monkeypatch) -> None:
    monkeypatch.setattr(stages, "match_table", raising(ValueError("negative rank")))
    done = place.execute(place.suite(), limit=2)
    (failure,) = done.failures
    assert (failure.exit_code, failure.message) == (
        3,
        "step 'tiny__pipeline__retrieval_matches' failed: ValueError: negative rank",
    )
    assert "--verbose" in str(failure)


def test_what_failed_stands_in_the_history_that_the_web_page_shows(place, monkeypatch) -> None:
    monkeypatch.setattr(stages, "make_corpus", raising(BROKEN))
    done = place.execute(place.suite())
    with shared_instance(place.home) as instance:
        (run,) = instance.get_runs()
        failed = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    assert (run.run_id, run.status) == (done.run_id, dg.DagsterRunStatus.FAILURE)
    assert run.tags["dagster/partition"] == "2026-03-01"
    assert failed[0].get_dagster_event().step_failure_data.user_failure_data.description == str(BROKEN)


def test_ctrl_c_ends_the_run_and_is_passed_on(place, monkeypatch) -> None:
    monkeypatch.setattr(stages, "match_table", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        place.execute(place.suite(), limit=2)


def test_missing_models_are_told_before_the_target_is_asked_anything(place, monkeypatch) -> None:
    from rag_eval_assets.evaluation.preflight import Need

    needed = [Need("model a", "found", None), Need("model b", None, BROKEN)]
    monkeypatch.setattr(lineage, "model_needs", lambda suite, **_: needed)
    done = place.execute(place.suite(), limit=2)
    assert done.failures == [BROKEN]
    assert place.calls == []
    assert not place.files("tables/tiny~sample/eval_examples")


def test_an_unreadable_data_set_stops_everything_behind_it(place) -> None:
    suite = place.suite()
    (suite.path.parent / "rows.jsonl").unlink()
    done = place.execute(suite, limit=2)
    (failure,) = done.failures
    assert isinstance(failure, ConfigurationError)
    assert "rows.jsonl" in str(failure)
    assert place.calls == []
