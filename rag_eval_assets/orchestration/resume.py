"""Going on with a run that failed or was stopped: which of its tables are good and need not be made again."""

from __future__ import annotations

import dagster as dg

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration.build import suite_tags
from rag_eval_assets.suite.load import LoadedSuite

RESUMES_TAG = "rag_eval/resumes"
"""Run tag of a run that goes on with an earlier one: id of that run."""

_PARTITION_TAG = "dagster/partition"
_UNFINISHED = {dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}


def unfinished_runs(instance: dg.DagsterInstance, suite: LoadedSuite, run_date: str) -> list[dg.DagsterRun]:
    """The runs to go on with, newest first: the last one of this suite and date, and those that it went on with.

    Raises:
        ConfigurationError: no run of this suite, as its file stands now, was left unfinished for the date.
    """
    found: list[dg.DagsterRun] = []
    filters = dg.RunsFilter(tags={**suite_tags(suite), _PARTITION_TAG: run_date})
    for run in instance.get_runs(filters):
        if run.status not in _UNFINISHED or (found and found[-1].tags.get(RESUMES_TAG) != run.run_id):
            break
        found.append(run)
    if not found:
        raise ConfigurationError(
            f"there is nothing to resume: no run of suite {suite.name!r} for {run_date} was left unfinished",
            fix="Run without --resume (a changed suite file is another suite, whose runs cannot be gone on with)",
        )
    return found


def made_by(instance: dg.DagsterInstance, runs: list[dg.DagsterRun]) -> set[dg.AssetKey]:
    """The assets that `runs` made and found good: those whose blocking check passed after they were written."""
    entries = [
        entry for run in runs for entry in instance.all_logs(run.run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    ]
    evaluations = [entry.dagster_event.asset_check_evaluation_data for entry in entries if entry.dagster_event]
    return {check.asset_key for check in evaluations if check.blocking and check.passed}
