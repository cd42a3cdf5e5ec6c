"""Progress in a log: a line now and then, never one per unit, and the stage is closed whatever happens."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from rag_eval_assets.cli.console import BarReporter
from rag_eval_assets.progress import SILENT, LogReporter, stage


def test_no_line_is_written_before_the_interval_is_over() -> None:
    lines: list[str] = []
    with stage(LogReporter(lines.append, interval=60), "bertscore", 1000, "pairs") as running:
        for _ in range(1000):
            running.advance()
    assert lines == []


def test_a_line_says_how_far_the_stage_is_and_how_long_it_will_take() -> None:
    lines: list[str] = []
    with stage(LogReporter(lines.append, interval=0.05), "bertscore", 4, "pairs") as running:
        time.sleep(0.06)
        running.advance(3)
        running.advance(1)
    assert lines == ["bertscore: 3 of 4 pairs, about 0 s left"]


def test_more_than_announced_is_no_negative_time() -> None:
    lines: list[str] = []
    with stage(LogReporter(lines.append, interval=0), "index", 1, "passages") as running:
        running.advance(5)
    assert lines == ["index: 5 of 1 passages, about 0 s left"]


def test_a_stage_is_closed_also_when_it_fails() -> None:
    closed: list[object] = []

    class Closing(LogReporter):
        def close(self, stage: object) -> None:
            closed.append(stage)

    with pytest.raises(ValueError, match="oops"), stage(Closing(print), "index", 1, "passages") as running:
        raise ValueError("oops")
    assert closed == [running]


def test_silence_takes_everything() -> None:
    with stage(SILENT, "index", 1, "passages") as running:
        assert running.advance(5) is None


def test_a_warning_is_a_line_of_its_own_and_no_markup() -> None:
    text = "s3://bucket/[red]key is damaged, \x1b[2J and what stood there is asked again"
    lines: list[str] = []
    LogReporter(lines.append).warn(text)
    assert lines == [f"warning: {text}"]
    console = Console(file=io.StringIO(), width=20, force_terminal=True, color_system=None)
    with Progress(console=console) as progress:
        BarReporter(progress).warn(text)
    shown = console.file.getvalue()
    assert "warning: s3://bucket/[red]key is damaged, " in shown, "in one piece, though the terminal is narrow"
    assert "\x1b[2J" not in shown
    assert SILENT.warn(text) is None
