"""`rag-eval run`: evaluate a suite for one run date."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_eval_assets.cli.console import print_error, progress_reporter, stderr, stdout
from rag_eval_assets.errors import ConfigurationError, EvalError, InfrastructureError, describe_error
from rag_eval_assets.progress import Reporter
from rag_eval_assets.report.schema import Report
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.suite.load import DEFAULT_SUITE, LoadedSuite, load_suite
from rag_eval_assets.terminal import sanitize

if TYPE_CHECKING:
    from rag_eval_assets.orchestration.execute import Executed

STOPPED = 130
"""Exit code after Ctrl-C: what shells give a command that SIGINT ended."""


def run(
    suite: Annotated[
        str | None,
        typer.Argument(help="A packaged suite or the path of a suite file.", show_default=f"{DEFAULT_SUITE}"),
    ] = None,
    run_date: Annotated[
        str | None, typer.Option("--run-date", metavar="DATE", help="Run date, YYYY-MM-DD; by default today, UTC.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="Evaluate only the first N examples, as a sample apart.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", metavar="NAME", help="Only this target; may be repeated.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the date's last run, which failed or was stopped.")
    ] = False,
    from_report: Annotated[
        str | None,
        typer.Option(
            "--from-report",
            metavar="FILE",
            help="Run again what a report tells: its suite (or SUITE), target, date and limit; then say what differs.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Dagster's log as well.")] = False,
) -> None:
    """Evaluate a suite: ask every question, score every answer, write one report per target."""
    try:
        request = _request(suite, run_date, limit, target, from_report)
        code, result = _evaluate(request, resume=resume, quiet=quiet, verbose=verbose, table=not as_json)
    except EvalError as error:
        if not as_json:
            raise
        print_error(error)
        code, result = error.exit_code, _with_error(result_json([]), error)
    except KeyboardInterrupt:
        stderr().print("stopped; the same command with --resume goes on from here")
        code, result = STOPPED, {**result_json([]), "error": "stopped", "exit_code": STOPPED}
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
    if code:
        raise typer.Exit(code)


@dataclass(frozen=True)
class Request:
    """What is to be evaluated, checked.

    Attributes:
        suite, run_date, targets, limit: as `execute` takes them.
        before: the report that this run repeats, as plain JSON values.
    """

    suite: LoadedSuite
    run_date: str
    targets: list[str]
    limit: int | None
    before: dict[str, Any] | None = None


def make_request(suite: LoadedSuite, run_date: str | None, targets: list[str] | None, limit: int | None) -> Request:
    """A request over a suite; raises ConfigurationError where date, target or limit do not go with it."""
    if limit is not None and limit < 1:
        raise ConfigurationError(f"--limit is {limit}", fix="Give a number from 1")
    return Request(suite, check_run_date(suite, run_date), check_targets(suite, targets), limit)


def _request(
    name: str | None, run_date: str | None, limit: int | None, targets: list[str] | None, from_report: str | None
) -> Request:
    if from_report is None:
        return make_request(load_suite(name or DEFAULT_SUITE), run_date, targets, limit)
    if targets:
        raise ConfigurationError("--target and --from-report are both given", fix="The report tells its target")
    from rag_eval_assets.evaluation.rerun import rerun_of

    again = rerun_of(from_report, name)
    date, size = run_date or again.run_date, again.limit if limit is None else limit
    return replace(make_request(again.suite, date, [again.target], size), before=again.before)


def _evaluate(request: Request, *, resume: bool, quiet: bool, verbose: bool, table: bool) -> tuple[int, dict[str, Any]]:
    if request.limit is not None and resume:
        raise ConfigurationError("--resume and --limit are both given", fix="Samples keep no history to go on with")
    with progress_reporter(quiet=quiet) as reporter:
        done = run_request(request, reporter, resume=resume, verbose=verbose)
    if table and not quiet:
        for written in done.reports:
            _show(written)
    for failure in {str(failure): failure for failure in done.failures}.values():  # two stages may fail alike
        print_error(failure)
    result = result_json(done.reports)
    if request.before is not None and done.reports:
        result["differences"] = _compare(request.before, done.reports[0].report, show=table and not quiet)
    if done.failures:
        first = done.failures[0]
        return first.exit_code, _with_error(result, first)
    return 0, result


def run_request(request: Request, reporter: Reporter, *, resume: bool = False, verbose: bool = False) -> Executed:
    """Execute what is requested, once everything that it needs is there.

    Raises:
        ConfigurationError: something that the suite needs is not there.
        InfrastructureError: the run cannot be kept, or fails for a reason that no stage knows.
    """
    from rag_eval_assets.evaluation.preflight import needs, require

    require(needs(request.suite))
    from rag_eval_assets.orchestration.execute import execute  # Dagster takes seconds to import

    try:
        return execute(
            request.suite,
            request.run_date,
            reporter=reporter,
            targets=request.targets,
            limit=request.limit,
            resume=resume,
            verbose=verbose,
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


def _compare(before: dict[str, Any], report: Report, *, show: bool) -> list[str]:
    """What differs from the report that was repeated, printed unless only the list is wanted."""
    from rag_eval_assets.report.differences import differences

    found = differences(before, report.to_json())
    if show:
        equal = before["content_sha256"] == report.content_sha256
        stdout().print(f"\ncontent: {'equal to that of the report' if equal else 'differs from that of the report'}")
        for line in found:
            stdout().print(f"differs: {sanitize(line)}", markup=False, soft_wrap=True)
    return found


def _with_error(result: dict[str, Any], error: EvalError) -> dict[str, Any]:
    return {**result, "error": str(error), "exit_code": error.exit_code}


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
    calls = {
        "live": sum(report.run.calls.live for report in runs),
        "journal": sum(report.run.calls.journal for report in runs),
        "replayed": sum(report.run.calls.replayed for report in runs),
        "recorded": sum(report.run.calls.recorded for report in runs),
    }
    seconds = {name: value for report in runs for name, value in _seconds(report, len(runs) > 1).items()}
    alone = entries[0] if len(entries) == 1 else {}
    return {**alone, "reports": entries, "seconds": seconds, "calls": calls}


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


def _show(written: WrittenReport) -> None:
    from rag_eval_assets.report.show import render

    console = stdout()
    console.print(render(written.report))
    console.print(f"\nreport: {written.place}", markup=False, soft_wrap=True)
    console.print(f"page:   {written.page}", markup=False, soft_wrap=True)
