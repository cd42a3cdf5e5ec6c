"""What a person sees of a report in a terminal."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import Console

from rag_eval_assets.report.build import build_report
from rag_eval_assets.report.html import report_html
from rag_eval_assets.report.markdown import summary_markdown
from rag_eval_assets.report.show import lowest_examples, render


@pytest.fixture
def shown():
    def show(report, width: int = 110) -> str:
        out = io.StringIO()
        Console(file=out, width=width, color_system=None).print(render(report))
        return out.getvalue()

    return show


def test_the_numbers_stand_with_what_they_rest_on(report, shown) -> None:
    text = shown(report)
    assert "demo / embedded  2026-03-01  data set questions test" in text
    assert "6 asked: 4 answered, 1 empty, 0 invalid text, 1 error; 1 row excluded" in text
    assert "top-2 match 0.3333, 1 of the 3 judged\n           MRR 0.4444, nDCG@2 0.3333" in text
    line = next(line for line in text.splitlines() if line.startswith("bertscore_f1"))
    assert line.split() == ["bertscore_f1", "0.7000", "-", "0.5400", "0.7000", "0.8600", "3/6"]


def test_the_lowest_scores_come_first_and_unscored_examples_not_at_all(report) -> None:
    assert [(score, example.id) for score, example in lowest_examples(report.examples)] == [
        (0.5, "e2"),
        (0.7, "e4"),
        (0.9, "e1"),
    ]
    assert len(lowest_examples(report.examples, 2)) == 2


def test_texts_of_others_steer_nothing(make_inputs, tables, make_rows, shown) -> None:
    hostile = "[bold red]x[/] \x1b[2J\r\nnext \u202egnp.exe [link=http://x]y[/link]"
    answers = tables["generated_answers"]
    position = answers.schema.get_field_index("answer")
    tables["generated_answers"] = answers.set_column(position, answers.schema.field(position), pa.array([hostile] * 6))
    text = shown(build_report(make_inputs(rows=make_rows(tables), suite="s[red]\x1b")), width=300)
    assert r"[bold red]x[/] \x1b[2J\r\nnext \u{202e}gnp.exe [link=http://x]y[/link]" in text
    assert r"s[red]\x1b / embedded" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_long_texts_stay_on_one_line(make_inputs, tables, make_rows, shown) -> None:
    answers = tables["generated_answers"]
    position = answers.schema.get_field_index("answer")
    column = pa.array(["long answer " * 200] * 6)
    tables["generated_answers"] = answers.set_column(position, answers.schema.field(position), column)
    text = shown(build_report(make_inputs(rows=make_rows(tables))), width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert len([line for line in text.splitlines() if "long answer" in line]) == 3


def test_a_backfilled_date_says_so(make_inputs, shown) -> None:
    inputs = make_inputs()
    late = build_report(make_inputs(run=type(inputs.run)("2026-02-01", "d", "qa", inputs.run.host)))
    assert "generated 29 days after the run date" in shown(late)


def test_a_truncated_report_says_where_examples_are(make_inputs, shown) -> None:
    assert "Examples stand in the Parquet" in shown(build_report(make_inputs(max_examples=0)))


def test_why_calls_failed_is_told_the_most_frequent_reason_first(report, shown) -> None:
    reasons = ["timeout: no answer", *["bad_response: has nothing at '/text'"] * 2, "b", "c"]
    examples = [
        example.model_copy(update={"error": reason})
        for example, reason in zip(report.examples, [*reasons, None], strict=True)
    ]
    lines = shown(report.model_copy(update={"examples": examples})).splitlines()
    place = next(number for number, line in enumerate(lines) if " asked: " in line)
    assert lines[place + 1 : place + 5] == [
        "    2 x bad_response: has nothing at '/text'",
        "    1 x timeout: no answer",
        "    1 x b",
        "    and 1 other reason",
    ]


def test_replayed_answers_are_said_to_be_replayed_everywhere(report, shown) -> None:
    said = "2 of 6 answers were replayed from recordings, and the target was not asked for them; --cache live asks it"
    calls = report.run.calls.model_copy(update={"replayed": 2})
    replayed = report.model_copy(update={"run": report.run.model_copy(update={"calls": calls})})
    for show in (lambda made: shown(made, width=200), summary_markdown, report_html):
        assert said in show(replayed)
        assert "replayed" not in show(report)
