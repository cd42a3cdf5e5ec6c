"""`rag-eval report`: look at a report, and prove that its figures follow from its examples."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_eval_assets.cli.console import print_error, progress_reporter, stdout
from rag_eval_assets.errors import InfrastructureError

app = typer.Typer(help="Look at reports, and deliver those that wait.", no_args_is_help=True)

File = Annotated[str, typer.Argument(metavar="FILE", help="Path of a report's JSON file, or its s3:// URI.")]


@app.command()
def show(file: File) -> None:
    """Print a report's summary and its weakest examples."""
    from rag_eval_assets.report.read import read_report
    from rag_eval_assets.report.show import render

    stdout().print(render(read_report(file)))


@app.command()
def recompute(file: File) -> None:
    """Compute every summary again from the examples; exit 1 where a figure differs."""
    from rag_eval_assets.report.recompute import recompute as recompute_report

    result = recompute_report(file)
    if result.equal:
        typer.echo("equal: every summary follows from the examples")
        return
    for difference in result.differences:
        stdout().print(f"differs: {difference}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1)


@app.command()
def push(
    run_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN_ID]...", help="Only these reports; by default all that wait.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Deliver the reports that wait in the spool, each to its bucket; settings of the environment come first."""
    from rag_eval_assets.evaluation.pushing import push as push_reports
    from rag_eval_assets.home import Home

    failures: list[InfrastructureError] = []
    with progress_reporter(quiet=quiet) as reporter:
        for pushed in push_reports(Home.from_environment(), run_ids or [], reporter):
            if isinstance(pushed, InfrastructureError):
                print_error(pushed)
                failures.append(pushed)
            else:
                stdout().print(pushed, markup=False, soft_wrap=True)
    if failures:
        raise typer.Exit(failures[0].exit_code)
