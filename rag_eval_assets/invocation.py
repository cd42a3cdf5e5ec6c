"""One evaluation as an entry point asks for it: checked beforehand, executed, and told as JSON.

The command line and the function entry share it; it knows neither terminals nor events.
"""

from __future__ import annotations

import datetime as dt
import difflib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_eval_assets.errors import (
    ConfigurationError,
    EvalError,
    InfrastructureError,
    QualityError,
    RecordingMissingError,
    describe_error,
)
from rag_eval_assets.progress import Reporter
from rag_eval_assets.recording.modes import FROM_THE_COMMAND_LINE, Modes, choose_modes, read_mode
from rag_eval_assets.report.schema import Report
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.wording import counted_doing

if TYPE_CHECKING:
    from rag_eval_assets.orchestration.execute import Executed


@dataclass(frozen=True)
class Request:
    """What is to be evaluated, checked.

    Attributes:
        suite, run_date, targets, modes, limit, resume, only_failed: as `execute` takes them.
        before: the report that this run repeats, as plain JSON values.
    """

    suite: LoadedSuite
    run_date: str
    targets: list[str]
    modes: Modes
    limit: int | None = None
    resume: bool = False
    only_failed: bool = False
    before: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigurationError(f"--limit is {self.limit}", fix="Give a number from 1")
        if self.limit is not None and self.resume:
            raise ConfigurationError("--resume and --limit are both given", fix="Samples keep no history to go on with")
        if self.only_failed and (self.limit is not None or self.resume):
            raise ConfigurationError(
                f"--only-failed and {'--resume' if self.resume else '--limit'} are both given",
                fix="Leave one of them out",
            )


def make_request(
    suite: LoadedSuite,
    *,
    run_date: str | None = None,
    targets: list[str] | None = None,
    cache: str | None = None,
    limit: int | None = None,
    resume: bool = False,
    only_failed: bool = False,
    before: dict[str, Any] | None = None,
) -> Request:
    """A request over a suite; whatever is None is what the suite says, or today, or everything.

    Raises:
        ConfigurationError: one of them does not go with the suite or with another one.
    """
    given = suite.suite.cache
    modes = choose_modes(
        FROM_THE_COMMAND_LINE, suite=(given.target, given.embeddings), both=read_mode(cache, "--cache")
    )
    date, names = check_run_date(suite, run_date), check_targets(suite, targets)
    return Request(suite, date, names, modes, limit, resume, only_failed, before)


def run_request(
    request: Request, reporter: Reporter, *, verbose: bool = False, tell: Callable[[str], None] | None = None
) -> Executed:
    """Execute what is requested, once everything that it needs is there.

    Args:
        request: what.
        reporter: shows progress.
        verbose: show Dagster's own log on stderr.
        tell: is told in a line, before it starts, how much a resumed run keeps.

    Raises:
        ConfigurationError: something that the suite needs is not there.
        InfrastructureError: the run cannot be kept, or fails for a reason that no stage knows.
    """
    from rag_eval_assets.evaluation.preflight import needs, require

    require(needs(request.suite, offline=request.modes.offline), request.suite)
    from rag_eval_assets.orchestration.execute import execute  # Dagster takes seconds to import

    try:
        return execute(
            request.suite,
            request.run_date,
            reporter=reporter,
            targets=request.targets,
            modes=request.modes,
            limit=request.limit,
            resume=request.resume,
            only_failed=request.only_failed,
            verbose=verbose,
            tell=tell,
        )
    except EvalError:
        raise
    except OSError as error:  # the home cannot be made, the disk is full
        raise InfrastructureError(f"the run cannot be kept ({error})", fix="Check RAG_EVAL_HOME") from error
    except Exception as error:  # Dagster's database on a full or read-only disk, or a bug
        if verbose:
            traceback.print_exc()
        raise InfrastructureError(
            f"the run could not be executed ({describe_error(error)})",
            fix="Check RAG_EVAL_HOME and its disk; --verbose shows the whole trace",
        ) from error


def unmet(suite: LoadedSuite, reports: list[WrittenReport]) -> list[EvalError]:
    """What the reports of a finished run say against it: calls without recording, then conditions that are not met."""
    missing: list[EvalError] = []
    quality: list[EvalError] = []
    for report in (written.report for written in reports):
        count = sum(calls.missing for calls in (report.run.calls, *report.run.scorer_calls.values()))
        if count:
            missing.append(
                RecordingMissingError(
                    f"{report.target}: {counted_doing(count, 'call', 'has', 'have')} no recording; "
                    "the report says which",
                    fix=f"Record them: `rag-eval run {suite.argument} --cache auto`",
                )
            )
        quality.extend(
            QualityError(f"{report.target}: {gate.name} is not met: {gate.reason or gate.value}")
            for gate in report.gates.results
            if gate.outcome == "fail"
        )
    return [*missing, *quality]


def check_run_date(suite: LoadedSuite, given: str | None) -> str:
    """The run date as YYYY-MM-DD, today (UTC) where none is given.

    Raises:
        ConfigurationError: it is no date, lies before the suite's first or in the future.
    """
    today, first = dt.datetime.now(dt.UTC).date(), suite.suite.run.start_date
    try:
        date = today if given is None else dt.date.fromisoformat(given)
    except ValueError as error:
        raise ConfigurationError(f"--run-date is {given!r}", fix="Give a date as YYYY-MM-DD") from error
    if date < first:
        raise ConfigurationError(
            f"--run-date {date} lies before the suite's first run date {first}", fix="Set 'run.start_date' earlier"
        )
    if date > today:
        raise ConfigurationError(f"--run-date {date} lies in the future", fix=f"Today is {today} (UTC)")
    return date.isoformat()


def check_targets(suite: LoadedSuite, given: list[str] | None) -> list[str]:
    """The targets to evaluate; all where none is given. Raises ConfigurationError where one is unknown."""
    known = list(suite.suite.targets)
    for name in given or []:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigurationError(
                f"suite {suite.name!r} has no target {name!r}",
                fix=f"Did you mean {near[0]!r}?" if near else f"Its targets: {', '.join(known)}",
            )
    return given or known


def result_json(reports: list[WrittenReport]) -> dict[str, Any]:
    """What `--json` prints: one entry per report, and the only one's fields at top level as well."""
    entries = [_entry(written) for written in reports]
    runs = [written.report for written in reports]
    calls = _calls(runs)
    seconds = {name: value for report in runs for name, value in _seconds(report, len(runs) > 1).items()}
    alone = entries[0] if len(entries) == 1 else {}
    return {**alone, "reports": entries, "seconds": seconds, "calls": calls}


def _calls(reports: list[Report]) -> dict[str, Any]:
    """Calls of all reports by what became of them, in all and per channel."""
    channels = {
        "target": [report.run.calls.model_dump() for report in reports],
        "embeddings": [calls.model_dump() for report in reports for calls in report.run.scorer_calls.values()],
    }
    kinds = ("live", "journal", "replayed", "recorded", "missing", "kept")
    by_channel = {
        name: {kind: sum(int(row.get(kind, 0)) for row in rows) for kind in kinds} for name, rows in channels.items()
    }
    return {**{kind: sum(counts[kind] for counts in by_channel.values()) for kind in kinds}, **by_channel}


def _entry(written: WrittenReport) -> dict[str, Any]:
    content = written.report.to_json()
    return {
        "target": written.report.target,
        "run_id": written.report.run_id,
        "report": written.place,
        "content_sha256": written.report.content_sha256,
        "summary": {name: content[name] for name in ("retrieval_summary", "answer_similarity_summary")},
        "counts": content["counts"],
    }


def _seconds(report: Report, several: bool) -> dict[str, float]:
    shared = ("corpus", "eval_examples")
    return {
        f"{report.target}/{stage}" if several and stage not in shared else stage: seconds
        for stage, seconds in report.run.seconds.items()
    }
