# pyright: reportUnknownMemberType=false
"""A report's scores as one small picture: how they spread over the examples, and how their means went over dates."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

COLOURS = {"bertscore_f1": "#4a7dbd", "sentence_cosine": "#c9762b", "top_k_match_rate": "#4c9a5b"}
"""One colour per figure; they can be told apart in black and white by their line styles too."""

STYLES = {"bertscore_f1": "-", "sentence_cosine": "--", "top_k_match_rate": ":"}

BINS = 20

Point = Mapping[str, float | None]
"""Figures of one run date by name; None where there is none."""


def score_chart(values: Mapping[str, Sequence[float]], trend: Mapping[str, Point]) -> bytes:
    """A PNG of some 10 kB: left a histogram per score, right the means by run date.

    Args:
        values: score name to the values of all scored examples.
        trend: run date (YYYY-MM-DD, in order) to its figures.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Margins are given: to have them computed would draw everything twice.
    figure = Figure(figsize=(8, 2.4), dpi=80)
    figure.subplots_adjust(left=0.06, right=0.965, bottom=0.1, top=0.89, wspace=0.17)
    FigureCanvasAgg(figure)
    spread, course = figure.subplots(1, 2)
    _draw_spread(spread, values)
    _draw_course(course, trend)
    out = io.BytesIO()
    # No version or date in the file: equal figures give equal bytes.
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def as_markdown(png: bytes, title: str) -> str:
    """The picture as Markdown that needs no other file."""
    return f"![{title}](data:image/png;base64,{base64.b64encode(png).decode('ascii')})"


def _draw_spread(axes: Any, values: Mapping[str, Sequence[float]]) -> None:
    lowest = min((value for column in values.values() for value in column), default=0.0)
    low = min(0.0, math.floor(10 * lowest) / 10)
    for name, column in values.items():
        style = {"color": COLOURS.get(name), "linestyle": STYLES.get(name, "-")}
        axes.hist(column, bins=BINS, range=(low, 1.0), histtype="step", linewidth=1.5, label=name, **style)
    axes.set_title("examples by score", fontsize=9)
    _finish(axes)


def _draw_course(axes: Any, trend: Mapping[str, Point]) -> None:
    dates = list(trend)
    for name, colour in COLOURS.items():
        points = [(place, trend[date].get(name)) for place, date in enumerate(dates)]
        known = [(place, value) for place, value in points if value is not None]
        if known:
            places, means = zip(*known, strict=True)
            axes.plot(places, means, STYLES[name], color=colour, marker=".", linewidth=1.5, label=name)
    shown = sorted({0, len(dates) // 2, len(dates) - 1}) if dates else []
    axes.set_xticks(shown, [dates[place] for place in shown])
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_title("by run date", fontsize=9)
    _finish(axes)


def _finish(axes: Any) -> None:
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6, frameon=False)
