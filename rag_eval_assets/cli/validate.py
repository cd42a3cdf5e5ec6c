"""`rag-eval validate` and `rag-eval schema`: look at a suite without running it."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from rag_eval_assets.cli.console import stdout
from rag_eval_assets.errors import InfrastructureError, UnavailableError
from rag_eval_assets.suite.load import DEFAULT_SUITE, load_suite
from rag_eval_assets.terminal import sanitize
from rag_eval_assets.wording import counted


def validate(
    suite: Annotated[str, typer.Argument(help="A packaged suite or the path of a suite file.")] = DEFAULT_SUITE,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 also where a model or hub data set is missing here.")
    ] = False,
    download: Annotated[bool, typer.Option("--download", help="Download missing models into the hub's cache.")] = False,
) -> None:
    """Check a suite file and the files that it names, and say what it needs to run and what of that is missing here.

    Exits with 2 where something is wrong; what could be downloaded is missing and not wrong, but with --download the
    exit code is 3 where something is missing still. Variables that calls read are listed, and change no exit code.
    """
    from rag_eval_assets.evaluation.preflight import needs, variable_needs

    loaded = load_suite(suite)
    console = stdout()

    def say(line: str, style: str | None = None) -> None:
        console.print(sanitize(line), style=style, markup=False, soft_wrap=True)

    found = needs(loaded, allow_download=download)
    variables = variable_needs(loaded)
    problems = [need.problem for need in found if need.problem is not None]
    wrong = any(not isinstance(problem, UnavailableError) for problem in problems)
    lacking = len({str(problem) for problem in problems})
    unset = sum(need.problem is not None for need in variables)
    if wrong:
        verdict = "cannot be run as it is"
    elif lacking:
        verdict = f"valid, but cannot run here: {counted(lacking, 'thing')} {'is' if lacking == 1 else 'are'} missing"
    elif unset:
        verdict = f"valid, but only replays here: {counted(unset, 'variable')} {'is' if unset == 1 else 'are'} not set"
    else:
        verdict = "valid"
    say(f"{loaded.path.name}: {verdict} ({loaded.name}, sha256 {loaded.sha256[:16]})")
    missing: set[str] = set()
    for need in [*found, *variables]:
        word = "missing" if isinstance(need.problem, UnavailableError) else "wrong  "
        if need.problem is None:
            say(f"  found    {need.name}: {need.found}")
        elif str(need.problem) in missing:
            say(f"  {word}  {need.name}: for the same reason", "yellow")
        else:
            missing.add(str(need.problem))
            say(f"  {word}  {need.name}: {need.problem.message}", "yellow")
            if need.problem.fix:
                say(f"           {need.problem.fix}")
    if wrong or (lacking and strict and not download):
        raise typer.Exit(2)
    if lacking and download:
        raise typer.Exit(InfrastructureError.exit_code)


class SchemaName(StrEnum):
    """The schemas that are published."""

    SUITE = "suite"
    REPORT = "report"


def schema(name: Annotated[SchemaName, typer.Argument(help="Which schema.")] = SchemaName.SUITE) -> None:
    """Print the JSON Schema of suite files or of reports."""
    from rag_eval_assets.report.publish import json_schema
    from rag_eval_assets.suite.schema import suite_json_schema

    made = suite_json_schema() if name is SchemaName.SUITE else json_schema()
    typer.echo(json.dumps(made, indent=2, ensure_ascii=False))
