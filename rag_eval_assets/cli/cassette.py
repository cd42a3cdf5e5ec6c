"""`rag-eval cassette`: look at recorded calls, compare them in a review, and keep them in order."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from rag_eval_assets.cli.console import stdout
from rag_eval_assets.errors import ConfigurationError, RecordingMissingError
from rag_eval_assets.home import Home
from rag_eval_assets.recording.cassette import review
from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.request import embeddings_identity, request_key
from rag_eval_assets.suite.load import load_suite
from rag_eval_assets.terminal import sanitize
from rag_eval_assets.wording import counted

app = typer.Typer(help="Look at recorded calls, compare them, keep them in order.", no_args_is_help=True)

PlaceArgument = Annotated[
    str | None,
    typer.Argument(metavar="[PLACE]", help="A cassette's folder or a suite file; by default the only *.cassette here."),
]
_SHOWN_CHARACTERS = 60
_SHORT_KEY = 12


class Preference(StrEnum):
    """Which of two recordings that contradict each other is kept."""

    NEWEST = "newest"
    OLDEST = "oldest"


@app.command()
def key(
    url: Annotated[str, typer.Option("--url", help="Address of the API, as the suite has it.")],
    model: Annotated[str, typer.Option("--model", help="Model.")],
    text: Annotated[str, typer.Option("--text", help="Text that is embedded.")],
    trial: Annotated[int, typer.Option("--trial", min=0, help="Trial, 0-based.")] = 0,
    dimensions: Annotated[int | None, typer.Option("--dimensions", min=1, help="Length that is asked for.")] = None,
) -> None:
    """Print the key of an embeddings call."""
    typer.echo(request_key(embeddings_identity(url, model, dimensions=dimensions), text, trial))


@app.command("ls")
def list_recordings(place: PlaceArgument = None) -> None:
    """List the recordings: key, when recorded, what was called, and the beginning of its text."""
    for entry in review.entries_of(find(place)).values():
        _say(f"{entry.key[:_SHORT_KEY]}  {entry.recorded_at[:19]:19}  {review.kind_of(entry)}  {_excerpt(entry)}")


@app.command()
def show(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key, or the beginning of one.")],
    place: PlaceArgument = None,
    raw: Annotated[bool, typer.Option("--raw", help="The line as it stands in the cassette.")] = False,
) -> None:
    """Show one recording; of a vector its length, its norm and its first numbers."""
    entry = _only(review.entries_of(find(place)), key)
    if raw:
        typer.echo(entry.to_line().decode("utf-8"), nl=False)
        return
    content = {"key": entry.key, "request": entry.request, "response": _readable(entry), "meta": entry.meta}
    typer.echo(json.dumps(content, ensure_ascii=True, indent=2))


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="A", help="The cassette before: its folder or suite file.")],
    new: Annotated[str, typer.Argument(metavar="B", help="The cassette after.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show which requests came, went or changed from A to B, and how far each vector moved (cosine old against new)."""
    changes = review.compare(review.entries_of(find(old)), review.entries_of(find(new)))
    if as_json:
        listed = [{"kind": c.kind, "key": c.entry.key, "cosine": c.cosine, "request": c.entry.request} for c in changes]
        typer.echo(json.dumps({"changes": listed}, ensure_ascii=True))
        return
    marks = {"came": "+", "went": "-", "changed": "~"}
    for change in changes:
        moved = "" if change.kind != "changed" else f"  cosine {_cosine(change.cosine)}"
        entry = change.entry
        _say(f"{marks[change.kind]} {entry.key[:_SHORT_KEY]}{moved}  {review.kind_of(entry)}  {_excerpt(entry)}")
    counts = {kind: sum(change.kind == kind for change in changes) for kind in marks}
    _say(", ".join(f"{count} {kind}" for kind, count in counts.items()))


@app.command()
def verify(
    place: PlaceArgument = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="KEY", help="Drop the recording of this key; repeatable.")
    ] = None,
    drop_unreadable: Annotated[
        bool, typer.Option("--drop-unreadable", help="Drop the damaged lines of which not even the key can be read.")
    ] = False,
) -> None:
    """Check every line: exit 4 where one is damaged, was changed by hand, or contradicts another."""
    folder = find(place)
    if drop or drop_unreadable:
        beginnings = tuple(drop or [])
        gone = review.rewrite(
            folder,
            lambda entry: not entry.key.startswith(beginnings),
            lambda damage: not (drop_unreadable if damage.key is None else damage.key.startswith(beginnings)),
        )
        _say(f"dropped {counted(gone, 'line')}")
    found = list(review.problems(folder))
    for problem in found:
        _say(f"{problem.place}: {problem.what} (key {problem.key or 'unknown'})")
    if found:
        raise RecordingMissingError(
            f"{counted(len(found), 'problem')} in {folder.name}",
            fix="Restore the lines from the version control, or drop their keys (--drop KEY) and record them again",
        )
    _say(f"{folder.name}: {counted(len(review.entries_of(folder)), 'recording')}, all whole")


@app.command()
def prune(
    suite: Annotated[str, typer.Argument(help="The suite whose cassette is pruned.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
) -> None:
    """Drop the recordings that a suite no longer uses: other models, other questions, answers of older runs."""
    from rag_eval_assets.evaluation.context import Evaluation
    from rag_eval_assets.evaluation.recordings import used_by
    from rag_eval_assets.storage.store import LocalStore

    loaded, home = load_suite(suite), Home.from_environment()
    folder = find(suite)
    used = used_by(Evaluation(loaded, loaded.suite.run.start_date.isoformat(), home, LocalStore(home.tables)))
    unused = [entry for entry in review.entries_of(folder).values() if not used(entry)]
    for entry in unused:
        _say(f"- {entry.key[:_SHORT_KEY]}  {review.kind_of(entry)}  {_excerpt(entry)}")
    if unused and not dry_run:
        review.rewrite(folder, used, lambda _: True)
    _say(f"{counted(len(unused), 'recording')} {'would go' if dry_run else 'dropped'}")


@app.command()
def merge(
    into: Annotated[str, typer.Argument(metavar="INTO", help="The cassette that is written.")],
    others: Annotated[list[str] | None, typer.Argument(metavar="[OTHER]...", help="Cassettes taken into it.")] = None,
    prefer: Annotated[
        Preference | None, typer.Option("--prefer", help="Which of recordings that contradict each other is kept.")
    ] = None,
) -> None:
    """Take other cassettes into one, or only sort it, as after a merge of two branches."""
    folder = find(into)
    changed = review.merge(folder, [find(other) for other in others or []], review.PREFER[prefer] if prefer else None)
    _say(f"{folder.name}: {counted(len(changed), 'file')} changed")


@app.command()
def stats(
    place: PlaceArgument = None, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
) -> None:
    """Count the recordings by kind, with their size and age."""
    found = review.statistics(find(place))
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        rows = cast("dict[str, int]", value) if isinstance(value, dict) else {"": value}
        for part, count in rows.items():
            _say(f"{name:11} {'-' if count is None else count}  {part}".rstrip())


def find(place: str | None) -> Path:
    """The folder that `place` means: a folder, the cassette of a suite, or the only one in the working directory.

    Raises:
        ConfigurationError: it is neither, or there is not exactly one here.
    """
    if place is None:
        here = sorted(path for path in Path.cwd().glob("*.cassette") if path.is_dir())
        if len(here) != 1:
            raise ConfigurationError(f"{len(here)} cassettes here", fix="Give a folder or a suite file")
        return here[0]
    if Path(place).is_dir():
        return Path(place).resolve()
    suite = load_suite(place)
    folder = suite.cassette_folder or Home.from_environment().cassette(suite.slug)
    review.require_cassette(folder)
    return folder


def _only(entries: dict[str, Entry], key: str) -> Entry:
    found = [entry for known, entry in entries.items() if known.startswith(key)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RecordingMissingError(f"there is no recording of key {key!r}", fix="`rag-eval cassette ls` lists them")
    raise ConfigurationError(f"{len(found)} keys begin with {key!r}", fix="Give more of the key")


def _readable(entry: Entry) -> dict[str, Any]:
    vector = review.vector_of(entry)
    if vector is None:
        return dict(entry.response)
    described = {
        "form": entry.response["vector"]["form"],
        "dims": len(vector),
        "norm": float((vector**2).sum() ** 0.5),
        "first": [float(number) for number in vector[:5]],
    }
    return {**entry.response, "vector": described}


def _excerpt(entry: Entry) -> str:
    text = str(entry.request.get("input", ""))
    cut = text[:_SHOWN_CHARACTERS] + ("..." if len(text) > _SHOWN_CHARACTERS else "")
    trial = entry.request.get("trial")
    return json.dumps(cut, ensure_ascii=False) + (f" trial {trial}" if trial else "")


def _cosine(value: float | None) -> str:
    return "-" if value is None else f"{value:.9f}".rstrip("0").rstrip(".")


def _say(line: str) -> None:
    stdout().print(sanitize(line), markup=False, soft_wrap=True)
