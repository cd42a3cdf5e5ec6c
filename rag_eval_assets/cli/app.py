"""The commands of `rag-eval`, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_eval_assets import __version__
from rag_eval_assets.cli import cassette, init, report, run, scores_cache, ui, validate

app = typer.Typer(
    help="Measure the quality of a RAG system over time. Exit codes: 0 done, 1 quality, 2 configuration, "
    "3 infrastructure, 4 recording missing, 130 stopped with Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(init.init)
app.command()(run.run)
app.command()(validate.validate)
app.command()(validate.schema)
app.command()(ui.ui)
app.add_typer(report.app, name="report")
app.add_typer(scores_cache.app, name="scores-cache")
app.add_typer(cassette.app, name="cassette")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rag-eval {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""
    del version
