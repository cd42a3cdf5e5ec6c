"""Going on with a run that failed or was stopped: which of its tables are good and need not be made again."""

from __future__ import annotations

from typing import Any

import dagster as dg

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.orchestration.lineage import asset_key
from rag_eval_assets.orchestration.tags import suite_tags
from rag_eval_assets.storage.store import data_version
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES

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
        if _is_limited(run):
            continue
        if run.status not in _UNFINISHED or (found and found[-1].tags.get(RESUMES_TAG) != run.run_id):
            break
        found.append(run)
    if found and _evaluation_config(found[0]).get("only_failed"):
        raise ConfigurationError(
            f"the last run of suite {suite.name!r} for {run_date} asked only what had failed",
            fix="Run with --only-failed again: what it got is not asked for twice",
        )
    if not found:
        raise ConfigurationError(
            f"there is nothing to resume: no run of suite {suite.name!r} for {run_date} was left unfinished",
            fix="Run without --resume (a changed suite file is another suite, whose runs cannot be gone on with)",
        )
    return found


def _is_limited(run: dg.DagsterRun) -> bool:
    """Whether a run evaluated a sample, whose tables stand apart; the launchpad starts such runs of the same job."""
    return _evaluation_config(run).get("limit") is not None


def _evaluation_config(run: dg.DagsterRun) -> dict[str, Any]:
    """What the launchpad or the command line set for a run."""
    config: Any = run.run_config
    for name in ("resources", "evaluation", "config"):
        config = config.get(name) or {}
    return config


def require_same_data(evaluation: Evaluation, kept: set[dg.AssetKey], *, option: str = "--resume") -> None:
    """Raise ConfigurationError where examples or corpus, if kept, are not what the suite's sources hold now."""
    done = "resumed" if option == "--resume" else "mixed with new answers"
    offline = evaluation.modes.offline
    changed = {
        CORPUS.name: lambda: load_corpus(evaluation.suite, offline=offline).manifest(),
        EVAL_EXAMPLES.name: lambda: load_examples(evaluation.suite, offline=offline).table,
    }
    for name, load in changed.items():
        key = evaluation.key(name)
        if asset_key(evaluation.suite, name, None) not in kept:
            continue
        if data_version(evaluation.store.read(key)) != data_version(load()):
            raise ConfigurationError(
                f"the run cannot be {done}: its {name} of {evaluation.run_date} has changed since",
                fix=f"Run without {option}",
            )


def made_by(instance: dg.DagsterInstance, runs: list[dg.DagsterRun]) -> set[dg.AssetKey]:
    """The assets that `runs` made and found good: those whose blocking check passed after they were written."""
    entries = [
        entry for run in runs for entry in instance.all_logs(run.run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    ]
    evaluations = [entry.dagster_event.asset_check_evaluation_data for entry in entries if entry.dagster_event]
    return {check.asset_key for check in evaluations if check.blocking and check.passed}
