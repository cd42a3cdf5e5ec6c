"""`rag-eval init`: a first suite over a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_eval_assets.cli.console import stdout
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.terminal import sanitize
from rag_eval_assets.wording import counted


def init(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Questions with answers: a csv, jsonl or parquet file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Suite to write; by default <DATA>.yaml here.")
    ] = None,
    question: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the question.")] = None,
    answer: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the reference answer.")] = None,
    context: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the context.")] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column of the id; '' numbers the rows.")
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Documents to retrieve from (columns id, text); by default the contexts."),
    ] = None,
) -> None:
    """Write a suite over a file of your own, the columns told by their names. Never replaces a file."""
    from rag_eval_assets.dataset.starter import make_starter

    path = output or Path(f"{data.stem}.yaml")
    named = {"question": question, "reference_answer": answer, "context": context, "id": id_}
    starter = make_starter(data, path, named=named, documents=documents)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter.text)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{str(path)!r} exists already",
            fix=f"Run it (rag-eval run {path}), or write another with --output FILE"
            if path.suffix in (".yaml", ".yml")
            else "Write another with --output FILE",
        ) from error
    except OSError as error:
        raise InfrastructureError(f"{str(path)!r} cannot be written ({error.strerror})") from error
    columns = {**starter.columns} if "id" in starter.columns else {**starter.columns, "id": "none, so row-0, row-1 ..."}
    lines = [f"wrote {path}: {counted(starter.examples, 'question')} over {counted(starter.documents, 'document')}"]
    lines += [f"  {role.replace('_', ' '):<17} {column}" for role, column in columns.items()]
    if starter.excluded:
        lines.append(f"  {counted(starter.excluded, 'row')} without a question left out")
    lines += [f"  {gap}" for gap in starter.gaps]
    for line in [*lines, f"next: rag-eval run {path}"]:
        stdout().print(sanitize(line), markup=False, soft_wrap=True)
