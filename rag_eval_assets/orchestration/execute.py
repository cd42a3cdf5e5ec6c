"""Executing a suite for one run date in this process, into the same history that the web server shows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from rag_eval_assets.errors import EvalError, InfrastructureError
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.build import build_definitions, job_name, suite_tags
from rag_eval_assets.orchestration.instance import process_tags, shared_instance
from rag_eval_assets.orchestration.lineage import asset_key, blueprints
from rag_eval_assets.orchestration.session import Session, session
from rag_eval_assets.progress import Reporter
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import SCORE_HISTORY


@dataclass(frozen=True)
class Executed:
    """What came of a run: the reports that were written, and what failed."""

    run_id: str
    reports: list[WrittenReport]
    failures: list[EvalError]


def execute(
    suite: LoadedSuite,
    run_date: str,
    *,
    reporter: Reporter,
    targets: Sequence[str],
    limit: int | None = None,
    verbose: bool = False,
) -> Executed:
    """Materialize the lineage of `suite` for `run_date`.

    A limited run is executed on an instance of its own that is then forgotten: it touches neither the tables nor the
    materializations of the whole evaluation.

    Args:
        suite: the suite.
        run_date: the partition, YYYY-MM-DD.
        reporter: shows progress.
        targets: names of the targets to evaluate.
        limit: only the first so many examples.
        verbose: show Dagster's own log on stderr.
    """
    job = build_definitions([suite]).resolve_job_def(job_name(suite))
    wanted = [
        asset_key(suite, blueprint.name, blueprint.target)
        for blueprint in blueprints(suite)
        if (blueprint.target is None or blueprint.target in targets)
        and (limit is None or blueprint.name != SCORE_HISTORY.name)
    ]
    config = {
        "loggers": {"console": {"config": {"log_level": "INFO" if verbose else "CRITICAL"}}},
        "resources": {"evaluation": {"config": {} if limit is None else {"limit": limit}}},
    }
    with _instance(limit) as instance, session(Session(reporter)) as opened:
        result = job.execute_in_process(
            instance=instance,
            partition_key=run_date,
            asset_selection=wanted,
            run_config=config,
            tags={**suite_tags(suite), **process_tags()},
            raise_on_error=False,
        )
    if not result.success and not opened.failures:
        opened.failures.append(_unexplained(result))
    return Executed(result.run_id, opened.reports, opened.failures)


@contextmanager
def _instance(limit: int | None) -> Generator[dg.DagsterInstance]:
    if limit is None:
        with shared_instance(Home.from_environment()) as instance:
            yield instance
    else:
        with dg.DagsterInstance.ephemeral() as instance:  # pyright: ignore[reportUnknownMemberType]
            yield instance


def _unexplained(result: dg.ExecuteInProcessResult) -> EvalError:
    """What to say where no asset raised one of our errors: a blocking check failed, or there is a bug."""
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed and check.blocking]
    if failed:
        first = failed[0]
        return InfrastructureError(
            f"check {first.check_name!r} of {first.asset_key.to_user_string()} failed: {first.description}",
            fix="What is downstream of it was not made",
        )
    events = [event for event in result.all_events if event.is_step_failure]
    error = events[0].step_failure_data.error if events else None
    text = (error.cause or error).message.strip() if error else "the run failed without saying why"
    step = f"step {events[0].step_key!r} failed: " if events else ""
    return InfrastructureError(f"{step}{text}", fix="Run again with --verbose for the whole trace")
