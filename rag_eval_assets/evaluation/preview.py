"""A few rows of a table with short texts, for people who look at an asset's page."""

from __future__ import annotations

import pyarrow as pa

ROWS = 5
"""Previews are kept in every run's event log for ever, so they are short; the table itself is one query away."""

CHARACTERS = 80
"""Length at which a text is cut: people's own texts stay in the tables."""

Cell = str | int | float | bool | None


def preview(table: pa.Table) -> list[dict[str, Cell]]:
    """The first rows, nested columns as their length, long texts cut."""
    return [{name: _cell(value) for name, value in row.items()} for row in table.slice(0, ROWS).to_pylist()]


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return f"{len(value)} items"  # pyright: ignore[reportUnknownArgumentType]
    text = " ".join(str(value).split())
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"
