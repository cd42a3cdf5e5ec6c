"""`rag-eval scores-cache`: what the scoring caches hold, and how to empty them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rag_eval_assets.cli.console import stdout
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.cache import Caches, cache_folder, describe_events, open_caches

app = typer.Typer(help="Look at the caches of scores and embeddings, or empty them.", no_args_is_help=True)


@app.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Show entries and size of each cache."""
    caches = _caches()
    held = {name: file.stats() for name, file in caches.files.items()}
    if as_json:
        content = {
            name: {
                "file": str(file.file),
                "entries": held[name].entries,
                "bytes": held[name].bytes,
                "limit_bytes": held[name].limit,
                "set_aside_bytes": held[name].set_aside,
            }
            for name, file in caches.files.items()
        }
        typer.echo(json.dumps(content, ensure_ascii=False))
        return
    console = stdout()
    for name, store in held.items():
        aside = f", and {_megabytes(store.set_aside)} MB of a damaged file" if store.set_aside else ""
        size = f"{_megabytes(store.bytes)} of {_megabytes(store.limit)} MB"
        console.print(f"{name:<8} {store.entries:>9,} entries  {size}{aside}", markup=False, soft_wrap=True)
    console.print(f"folder   {caches.files['scores'].file.parent}", markup=False, soft_wrap=True)
    _say_events(caches)


@app.command()
def clear() -> None:
    """Remove every entry, and damaged files that were set aside."""
    caches = _caches()
    removed = sum(file.stats().entries for file in caches.files.values())
    for file in caches.files.values():
        file.clear()
    stdout().print(f"removed {removed:,} entries", markup=False)
    _say_events(caches)


def _caches() -> Caches:
    return open_caches(cache_folder(Home.from_environment()))


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:,.1f}"


def _say_events(caches: Caches) -> None:
    for line in describe_events(caches.take_events()):
        stdout().print(f"note: {line}", markup=False, soft_wrap=True)
