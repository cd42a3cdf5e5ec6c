"""Executing a suite for one run date in this process, into the same history that the web server shows."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from rag_eval_assets.errors import EvalError, InfrastructureError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.only_failed import targets_with_failures
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.build import build_definitions, job_name
from rag_eval_assets.orchestration.instance import process_tags, shared_instance
from rag_eval_assets.orchestration.lineage import asset_key, blueprints
from rag_eval_assets.orchestration.resume import RESUMES_TAG, made_by, require_same_data, unfinished_runs
from rag_eval_assets.orchestration.session import Session, session
from rag_eval_assets.orchestration.tables import open_store
from rag_eval_assets.orchestration.tags import suite_tags
from rag_eval_assets.progress import Reporter
from rag_eval_assets.recording.modes import FROM_THE_COMMAND_LINE, Modes
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES
from rag_eval_assets.wording import counted

_TRACE = "Run again with --verbose for the whole trace"
_TOLD_ELSEWHERE = {"Failure", "DagsterAssetCheckFailedError"}
"""Step failures that an asset has told the session of, or that the evaluation of a check tells of."""


class RunInterrupted(KeyboardInterrupt):
    """A signal stopped a run that stands in the history as unfinished: it can be gone on with."""


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
    modes: Modes = FROM_THE_COMMAND_LINE,
    limit: int | None = None,
    resume: bool = False,
    only_failed: bool = False,
    verbose: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Executed:
    """Materialize the lineage of `suite` for `run_date`.

    A limited run is executed on an instance of its own that is then forgotten: it touches neither the tables nor the
    materializations of the whole evaluation.

    Args:
        suite: the suite.
        run_date: the partition, YYYY-MM-DD.
        reporter: shows progress.
        targets: names of the targets to evaluate.
        modes: what each channel of calls does with its recordings.
        limit: only the first so many examples.
        resume: keep the tables that the last, unfinished run of the date made and found good.
        only_failed: ask again only the questions of the date whose call failed.
        verbose: show Dagster's own log on stderr.
        tell: is told in a line, before it starts, how much a resumed run keeps.

    Raises:
        ConfigurationError: there is no unfinished run to resume, or nothing that failed to ask again.
        RunInterrupted: SIGINT or SIGTERM stopped the run; it stands as failed in the history.
        KeyboardInterrupt: the same came before the run began, or stopped a sample, of which nothing is kept.
    """
    home = Home.from_environment()
    store = open_store(home, suite)  # first: a store that cannot be used must not leave a failed run behind
    evaluation = Evaluation(suite, run_date, home, store)
    if only_failed:
        targets = targets_with_failures(evaluation, list(targets))
    job = build_definitions([suite]).resolve_job_def(job_name(suite))
    wanted = [
        asset_key(suite, blueprint.name, blueprint.target)
        for blueprint in blueprints(suite)
        if blueprint.target is None or blueprint.target in targets
    ]
    config = {
        "loggers": {"console": {"config": {"log_level": "INFO" if verbose else "CRITICAL"}}},
        "resources": {"evaluation": {"config": _overrides(modes, limit, only_failed=only_failed)}},
    }
    run_id = str(uuid.uuid4())
    with _instance(limit) as instance, session(Session(reporter)) as opened:
        unfinished = unfinished_runs(instance, suite, run_date) if resume else []
        kept = made_by(instance, unfinished)
        if only_failed:
            kept = {asset_key(suite, name, None) for name in (CORPUS.name, EVAL_EXAMPLES.name)}
        require_same_data(evaluation, kept, option="--only-failed" if only_failed else "--resume")
        if resume and tell is not None:
            tell(_what_is_kept(wanted, kept))
        result = job.execute_in_process(
            instance=instance,
            partition_key=run_date,
            asset_selection=[key for key in wanted if key not in kept],
            run_config=config,
            tags={
                **suite_tags(suite),
                **process_tags(run_id, os.getpid()),
                **({RESUMES_TAG: unfinished[0].run_id} if unfinished else {}),
            },
            run_id=run_id,
            raise_on_error=False,
        )
    if _was_interrupted(result):
        raise KeyboardInterrupt if limit is not None else RunInterrupted
    opened.failures.extend(_unexplained(result))
    if not result.success and not opened.failures:
        opened.failures.append(InfrastructureError("the run failed without saying why", fix=_TRACE))
    return Executed(result.run_id, opened.reports, opened.failures)


def _what_is_kept(wanted: Sequence[dg.AssetKey], kept: Collection[dg.AssetKey]) -> str:
    names = ["/".join(key.path[1:]) for key in wanted if key in kept]
    return f"resuming: {len(names)} of {counted(len(wanted), 'asset')} kept ({', '.join(names) or 'none was good'})"


def _overrides(modes: Modes, limit: int | None, *, only_failed: bool) -> dict[str, str | int | bool]:
    given: dict[str, str | int | bool] = {
        "cache_target": modes.target.value,
        "cache_embeddings": modes.embeddings.value,
    }
    return {**given, "only_failed": only_failed, **({} if limit is None else {"limit": limit})}


@contextmanager
def _instance(limit: int | None) -> Generator[dg.DagsterInstance]:
    if limit is None:
        with shared_instance(Home.from_environment()) as instance:
            yield instance
    else:
        with dg.DagsterInstance.ephemeral() as instance:  # pyright: ignore[reportUnknownMemberType]
            yield instance


def _was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Whether a signal ended the run. Dagster takes SIGINT and SIGTERM over and leaves no exception behind."""
    interruptions = {KeyboardInterrupt.__name__, dg.DagsterExecutionInterruptedError.__name__}
    errors = [event.job_failure_data.error for event in result.all_events if event.is_job_failure]
    return any(error is not None and error.cls_name in interruptions for error in errors)


def _unexplained(result: dg.ExecuteInProcessResult) -> list[EvalError]:
    """What to say of each step that failed without one of our errors: a blocking check, or a bug."""
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed and check.blocking]
    told: list[EvalError] = [
        InfrastructureError(
            f"check {check.check_name!r} of {check.asset_key.to_user_string()} failed: {check.description}",
            fix="What is downstream of it was not made",
        )
        for check in failed
    ]
    for event in result.all_events:
        error = event.step_failure_data.error if event.is_step_failure else None
        if error is not None and error.cls_name not in _TOLD_ELSEWHERE:
            text = (error.cause or error).message.strip()
            told.append(InfrastructureError(f"step {event.step_key!r} failed: {text}", fix=_TRACE))
    return told
