"""`rag-eval run`: evaluate a suite for one run date."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import traceback
from typing import Annotated, Any

import typer

from rag_eval_assets.cli.console import print_error, progress_reporter, stderr, stdout
from rag_eval_assets.errors import (
    ConfigurationError,
    EvalError,
    InfrastructureError,
    QualityError,
    RecordingMissingError,
    describe_error,
)
from rag_eval_assets.recording.modes import FROM_THE_COMMAND_LINE, choose_modes, read_mode
from rag_eval_assets.report.schema import Report
from rag_eval_assets.report.write import WrittenReport
from rag_eval_assets.suite.load import DEFAULT_SUITE, LoadedSuite, load_suite

STOPPED = 130
"""Exit code after Ctrl-C: what shells give a command that SIGINT ended."""


def run(
    suite: Annotated[str, typer.Argument(help="A packaged suite or the path of a suite file.")] = DEFAULT_SUITE,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Dagster's log as well.")] = False,
) -> None:
    """Evaluate a suite: ask every question, score every answer, write one report per target."""
    try:
        code, result = _evaluate(
            suite,
            run_date,
            limit,
            target,
            cache,
            resume=resume,
            only_failed=only_failed,
            quiet=quiet,
            verbose=verbose,
            table=not as_json,
        )
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


def _evaluate(
    name: str,
    run_date: str | None,
    limit: int | None,
    targets: list[str] | None,
    cache: str | None,
    *,
    resume: bool,
    only_failed: bool,
    quiet: bool,
    verbose: bool,
    table: bool,
) -> tuple[int, dict[str, Any]]:
    suite = load_suite(name)
    date = check_run_date(suite, run_date)
    if limit is not None and limit < 1:
        raise ConfigurationError(f"--limit is {limit}", fix="Give a number from 1")
    if limit is not None and resume:
        raise ConfigurationError("--resume and --limit are both given", fix="Samples keep no history to go on with")
    if only_failed and (limit is not None or resume):
        raise ConfigurationError(
            f"--only-failed and {'--resume' if resume else '--limit'} are both given", fix="Leave one of them out"
        )
    wanted = check_targets(suite, targets)
    given = suite.suite.cache
    modes = choose_modes(
        FROM_THE_COMMAND_LINE, suite=(given.target, given.embeddings), both=read_mode(cache, "--cache")
    )
    with progress_reporter(quiet=quiet) as reporter:
        from rag_eval_assets.evaluation.preflight import needs, require

        require(needs(suite, allow_download=not modes.offline))
        from rag_eval_assets.orchestration.execute import execute  # Dagster takes seconds to import

        try:
            done = execute(
                suite,
                date,
                reporter=reporter,
                targets=wanted,
                modes=modes,
                limit=limit,
                resume=resume,
                only_failed=only_failed,
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
    if table and not quiet:
        for written in done.reports:
            _show(written)
    failures = done.failures or unmet(suite, done.reports)
    for failure in {str(failure): failure for failure in failures}.values():  # two stages may fail alike
        print_error(failure)
    result = result_json(done.reports)
    if failures:
        first = failures[0]
        return first.exit_code, _with_error(result, first)
    return 0, result


def unmet(suite: LoadedSuite, reports: list[WrittenReport]) -> list[EvalError]:
    """What the reports of a finished run say against it: calls without recording, then conditions that are not met."""
    missing: list[EvalError] = []
    quality: list[EvalError] = []
    for report in (written.report for written in reports):
        count = sum(calls.missing for calls in (report.run.calls, *report.run.scorer_calls.values()))
        if count:
            missing.append(
                RecordingMissingError(
                    f"{report.target}: {count} calls have no recording; the report names them",
                    fix=f"Record them: `rag-eval run {suite.path.name} --cache auto`",
                )
            )
        quality.extend(
            QualityError(f"{report.target}: {gate.name} is not met: {gate.reason or gate.value}")
            for gate in report.gates.results
            if gate.outcome == "fail"
        )
    return [*missing, *quality]


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
        "report": str(written.json_path),
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
    console.print(f"\nreport: {written.json_path}", markup=False, soft_wrap=True)
    console.print(f"page:   {written.html_path}", markup=False, soft_wrap=True)
