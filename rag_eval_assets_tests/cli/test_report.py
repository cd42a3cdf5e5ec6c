"""`rag-eval report show` and `recompute`: what they print, and their exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def copy(evaluated, tmp_path: Path) -> Path:
    """The report and its table in a folder of their own."""
    shutil.copy(evaluated.report.with_suffix(".parquet"), tmp_path / "report.parquet")
    return Path(shutil.copy(evaluated.report, tmp_path / "report.json"))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_show_fits_any_terminal_and_cuts_no_number(evaluated, width: int) -> None:
    process = evaluated.place.run("report", "show", str(evaluated.report), COLUMNS=str(width))
    assert (process.returncode, process.stderr) == (0, "")
    lines = process.stdout.splitlines()
    assert max(len(line) for line in lines) <= width
    assert "harbour / first" in lines[0]
    (row,) = [line.split() for line in lines if line.startswith("sentence_cosine")]
    assert all("…" not in cell for cell in row)
    summary = json.loads(evaluated.report.read_text())["answer_similarity_summary"]["sentence_cosine"]
    assert row[1] == f"{summary['mean']:.4f}"
    assert row[-1:] == ["3/3"]
    assert (f"{summary['p10']:.4f}" in row) == (width >= 80), "a narrow terminal gets fewer columns"


@pytest.mark.parametrize("arguments", [("report", "show"), ("report", "recompute")])
def test_output_that_is_no_terminal_holds_no_escape_codes(evaluated, arguments: tuple[str, ...]) -> None:
    process = evaluated.place.run(*arguments, str(evaluated.report), TERM="xterm-256color")
    assert process.returncode == 0
    assert "\x1b" not in process.stdout + process.stderr
    assert "\x1b" not in evaluated.process.stdout + evaluated.process.stderr


def test_recompute_of_an_untouched_report_is_equal(evaluated, copy: Path) -> None:
    process = evaluated.place.run("report", "recompute", str(copy))
    assert (process.returncode, process.stdout) == (0, "equal: every summary follows from the examples\n")


def test_recompute_of_an_edited_report_names_the_figure_and_exits_with_1(evaluated, copy: Path) -> None:
    report = json.loads(copy.read_text())
    report["answer_similarity_summary"]["sentence_cosine"]["mean"] = 0.99
    copy.write_text(json.dumps(report))
    process = evaluated.place.run("report", "recompute", str(copy), COLUMNS="40")
    assert (process.returncode, process.stderr) == (1, "")
    (line,) = [line for line in process.stdout.splitlines() if "sentence_cosine.mean" in line]
    assert line.startswith("differs: answer_similarity_summary.sentence_cosine.mean: the report says 0.99")


@pytest.mark.parametrize("command", ["show", "recompute"])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "does not exist"),
        ("not json", "no valid JSON"),
        ("[1, 2]", "no evaluation report"),
        ('{"schema_version": "9.0.0"}', "schema_version '9.0.0'; this release reads major version 1"),
        ('{"schema_version": "1.0.0"}', "no valid report"),
    ],
    ids=["missing", "not JSON", "other JSON", "unknown major version", "incomplete"],
)
def test_what_is_no_report_is_told_in_one_line_with_exit_code_2(
    place, command: str, content: str | None, told: str
) -> None:
    if content is not None:
        (place.folder / "report.json").write_text(content)
    process = place.run("report", command, "report.json")
    assert (process.returncode, process.stdout) == (2, "")
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")
    assert told in line


@pytest.mark.parametrize("ending", [".html", ".parquet"])
def test_a_page_or_table_is_answered_with_the_report_beside_it(evaluated, ending: str) -> None:
    process = evaluated.place.run("report", "show", str(evaluated.report.with_suffix(ending)))
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.endswith(f". Give the JSON file beside it: {evaluated.report}\n")


def test_a_folder_is_answered_with_the_newest_report_in_it(evaluated) -> None:
    process = evaluated.place.run("report", "show", str(evaluated.place.home))
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith(f"error: '{evaluated.place.home}' is a folder. Give a report's JSON file, which ")
    newest = max(evaluated.report.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
    assert process.stderr.endswith(f"; the newest in it is {newest}\n")
