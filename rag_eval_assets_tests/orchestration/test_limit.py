"""Samples: a limited evaluation beside a whole one of the same date, which must not notice."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration.instance import shared_instance
from rag_eval_assets.report.read import read_report
from rag_eval_assets.suite.load import LoadedSuite

DATE = "2026-03-01"


@pytest.fixture(scope="module")
def suite(shared_place) -> LoadedSuite:
    suite = shared_place.suite()
    assert shared_place.execute(suite).failures == []
    return suite


def event_log(place) -> dict[str, int]:
    """Materializations of each asset, and the number of runs, of the persistent instance."""
    with shared_instance(place.home) as instance:
        made = {
            key.path[-1]: len(instance.fetch_materializations(key, limit=100).records)
            for key in instance.get_asset_keys()
        }
        return {**made, "runs": instance.get_runs_count()}


@pytest.fixture(scope="module")
def sampled(shared_place, suite: LoadedSuite) -> dict[str, Any]:
    """A sample from the command line, with what was there before and after."""
    files, events = shared_place.files(), event_log(shared_place)
    done = shared_place.execute(suite, limit=2)
    return {"before": (files, events), "done": done, "after": (shared_place.files(), event_log(shared_place))}


def test_every_file_of_the_whole_evaluation_keeps_its_bytes_from_the_command_line(sampled: dict[str, Any]) -> None:
    before, after = sampled["before"][0], sampled["after"][0]
    assert {path: after.get(path) for path in before} == before


def test_its_own_tables_stand_apart_and_leave_no_history(sampled: dict[str, Any]) -> None:
    new = set(sampled["after"][0]) - set(sampled["before"][0])
    tables = {path for path in new if path.startswith("tables/")}
    assert len(tables) == 8
    assert all(path.startswith("tables/tiny~sample/") for path in tables)
    assert not any("score_history" in path for path in new)


def test_the_event_log_does_not_hear_of_it(sampled: dict[str, Any]) -> None:
    assert sampled["before"][1] == sampled["after"][1]
    assert sampled["before"][1]["eval_report"] == 1


def test_its_report_says_that_it_is_a_sample(sampled: dict[str, Any]) -> None:
    (written,) = sampled["done"].reports
    report = read_report(written.json_path)
    assert report.suite == "tiny~sample"
    assert report.dataset.sample == "the first 2 of 4 examples"
    assert report.dataset.n_examples == 2
    assert set(report.run.seconds) == set(report.run.inputs)


def test_no_limit_below_one_from_the_command_line(shared_place, suite: LoadedSuite) -> None:
    files = shared_place.files()
    done = shared_place.execute(suite, limit=0)
    assert {type(failure) for failure in done.failures} == {ConfigurationError}
    assert "evaluation.limit is 0" in str(done.failures[0])
    assert done.reports == []
    assert shared_place.files() == files


@pytest.fixture(scope="module")
def launched(shared_place, suite: LoadedSuite) -> dict[str, Any]:
    """A sample on the persistent instance, with `resources: {evaluation: {config: {limit: 2}}}` in the launchpad."""
    files = shared_place.files()
    with shared_instance(shared_place.home) as instance:
        result = shared_place.materialize(suite, limit=2, instance=instance)
        newest = {key: instance.fetch_materializations(key, limit=1).records[0] for key in instance.get_asset_keys()}
    assert result.success
    made = {key.path[-1]: record.asset_materialization for key, record in newest.items()}
    return {"before": files, "after": shared_place.files(), "made": made, "run_id": result.run_id}


def test_every_file_of_the_whole_evaluation_keeps_its_bytes_from_the_launchpad(launched: dict[str, Any]) -> None:
    whole = {path: content for path, content in launched["before"].items() if "~sample" not in path}
    assert {path: launched["after"].get(path) for path in whole} == whole
    new = set(launched["after"]) - set(launched["before"])
    assert {path.rsplit(".", 1)[1] for path in new if path.startswith("reports/")} == {"html", "json", "parquet"}
    assert all("~sample" in path for path in new if path.startswith("tables/"))


def test_materializations_say_that_they_are_samples_and_plot_no_number(launched: dict[str, Any], village) -> None:
    assert set(launched["made"]) == {*village.SHARED, *village.STEPS}
    for name, materialization in launched["made"].items():
        metadata = materialization.metadata
        assert "sample" in metadata, name
        plotted = {key for key, entry in metadata.items() if isinstance(entry.value, int | float)}
        assert plotted == set(), name
        assert materialization.tags["dagster/data_version"].startswith("sample")
    assert "first 2 examples" in launched["made"]["generated_answers"].metadata["sample"].value


def test_drift_is_not_looked_at(shared_place, suite: LoadedSuite, launched: dict[str, Any]) -> None:
    with shared_instance(shared_place.home) as instance:
        events = instance.all_logs(launched["run_id"], of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    checks = [event.get_dagster_event().asset_check_evaluation_data for event in events]
    (drift,) = [check for check in checks if check.check_name == "drift"]
    assert drift.passed
    assert "sample" in (drift.description or "")


def test_a_report_made_anew_names_the_runs_of_the_whole_evaluation(
    shared_place, suite: LoadedSuite, launched: dict[str, Any]
) -> None:
    with shared_instance(shared_place.home) as instance:
        first = instance.fetch_materializations(
            dg.AssetKey(["tiny", "eval_examples"]), limit=1, ascending=True
        ).records[0]
        assert shared_place.materialize(suite, ["eval_report"], instance=instance).success
    (row,) = shared_place.table(suite, "eval_report").to_pylist()
    inputs = read_report(shared_place.home.reports / row["report"]).run.inputs
    assert {made.dagster_run_id for made in inputs.values()} == {first.run_id}


def test_no_limit_below_one_from_the_launchpad(shared_place, suite: LoadedSuite) -> None:
    files = shared_place.files()
    result = shared_place.materialize(suite, limit=0)
    assert not result.success
    (failed, *_) = [event for event in result.all_events if event.is_step_failure]
    assert "evaluation.limit is 0" in failed.step_failure_data.user_failure_data.description
    assert shared_place.files() == files
