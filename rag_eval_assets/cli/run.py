"""`rag-eval run`: evaluate a suite for one run date."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from rag_eval_assets.cli.console import print_error, progress_reporter, stderr, stdout
from rag_eval_assets.errors import ConfigurationError, EvalError
from rag_eval_assets.invocation import Request, make_request, result_json, run_request, unmet
from rag_eval_assets.report.schema import Report
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.suite.load import DEFAULT_SUITE, load_suite
from rag_eval_assets.terminal import sanitize
from rag_eval_assets.wording import counted

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
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="MODE",
            help="Recordings of calls: auto (replay, else call and record), replay (never call), live (call, record "
            "anew) or off. By default as the suite says, else auto.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the date's last run, which failed or was stopped.")
    ] = False,
    only_failed: Annotated[
        bool,
        typer.Option(
            "--only-failed", help="Ask again only what failed on the date; keep its other answers, score all."
        ),
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
    options: dict[str, Any] = {"cache": cache, "resume": resume, "only_failed": only_failed}
    try:
        if from_report is None:
            chosen = load_suite(suite or DEFAULT_SUITE)
            request = make_request(chosen, run_date=run_date, targets=target, limit=limit, **options)
        else:
            request = _again(from_report, suite, run_date, target, limit, options)
        code, result = _evaluate(request, quiet=quiet, verbose=verbose, table=not as_json)
    except EvalError as error:
        if not as_json:
            raise
        print_error(error)
        code, result = error.exit_code, _with_error(result_json([]), error)
    except KeyboardInterrupt as stopped:
        # Told by its name: importing Dagster for it would take seconds after Ctrl-C.
        on = type(stopped).__name__ == "RunInterrupted"
        _tell(
            "stopped; the same command with --resume goes on from here"
            if on
            else "stopped; nothing was begun that could be gone on with: give the same command again"
        )
        code, result = STOPPED, {**result_json([]), "error": "stopped", "exit_code": STOPPED}
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
    if code:
        raise typer.Exit(code)


def _again(
    from_report: str,
    suite: str | None,
    run_date: str | None,
    targets: list[str] | None,
    limit: int | None,
    options: dict[str, Any],
) -> Request:
    """The request that the report tells."""
    if targets:
        raise ConfigurationError("--target and --from-report are both given", fix="The report tells its target")
    from rag_eval_assets.evaluation.rerun import rerun_of

    told = rerun_of(from_report, suite)
    date, size = run_date or told.run_date, told.limit if limit is None else limit
    return make_request(told.suite, run_date=date, targets=[told.target], limit=size, before=told.before, **options)


def _evaluate(request: Request, *, quiet: bool, verbose: bool, table: bool) -> tuple[int, dict[str, Any]]:
    with progress_reporter(quiet=quiet) as reporter:
        done = run_request(request, reporter, verbose=verbose, tell=None if quiet else _tell)
    if table and not quiet:
        for written in done.reports:
            _show(written)
    taken_over = sum(written.report.run.calls.journal for written in done.reports)
    if taken_over and not quiet:
        _tell(f"{counted(taken_over, 'answer')} of a run that was stopped taken over, and not asked for again")
    failures = done.failures or unmet(request.suite, done.reports)
    for failure in {str(failure): failure for failure in failures}.values():  # two stages may fail alike
        print_error(failure)
    result = result_json(done.reports)
    if request.before is not None and done.reports:
        result["differences"] = _compare(request.before, done.reports[0].report, show=table and not quiet)
    if failures:
        first = failures[0]
        return first.exit_code, _with_error(result, first)
    return 0, result


def _tell(line: str) -> None:
    stderr().print(sanitize(line), markup=False, soft_wrap=True)


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


def _show(written: WrittenReport) -> None:
    from rag_eval_assets.report.show import render

    console = stdout()
    console.print(render(written.report))
    console.print(f"\nreport: {written.place}", markup=False, soft_wrap=True)
    console.print(f"page:   {written.page}", markup=False, soft_wrap=True)
