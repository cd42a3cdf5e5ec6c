"""The HTML page of a report: what a reviewer sees, and that nobody's text can do anything but be read."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

import pytest

from rag_eval_assets.report.build import build_report
from rag_eval_assets.report.html import BINS, histogram, report_html
from rag_eval_assets.report.write import write_report


class Page(HTMLParser):
    """Collects what a test asks about."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "rect", "line", "br"):
            self.open.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "line"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def page(report) -> Page:
    return Page(report_html(report))


def test_question_reference_and_answer_of_every_example_stand_on_it(report, page: Page) -> None:
    for example in report.examples:
        assert example.question in page.text
        assert (example.reference_answer or "") in page.text
        assert (example.generated_answer or "") in page.text
    assert page.tags.count("details") == len(report.examples)


def test_it_is_whole_has_no_script_and_asks_nobody(page: Page) -> None:
    assert page.open == []
    assert "script" not in page.tags
    assert page.references == []


def test_equal_reports_give_equal_pages(report) -> None:
    assert report_html(report) == report_html(report.model_copy(deep=True))


def test_texts_are_shown_and_not_obeyed(report) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)> & \x00\x1b[31m \u202e {{ 7 * 7 }}"
    example = report.examples[0].model_copy(update={"question": hostile, "generated_answer": hostile})
    page = Page(report_html(report.model_copy(update={"examples": [example], "suite": hostile})))
    assert "script" not in page.tags and "img" not in page.tags
    assert "<script>alert(1)</script><img src=x onerror=alert(2)> & \ufffd\ufffd[31m" in page.text
    assert "{{ 7 * 7 }}" in page.text


def test_examples_without_a_score_come_first_and_then_the_lowest(report, page: Page) -> None:
    scored = {example.id for example in report.examples if example.answer_similarity.bertscore is not None}
    places = {example.id: page.text.index(example.question) for example in report.examples}
    assert max(places[name] for name in places if name not in scored) < min(places[name] for name in scored)


def test_a_report_that_lists_no_examples_says_where_they_are(make_inputs) -> None:
    short = build_report(dataclasses.replace(make_inputs(), max_examples=0))
    page = Page(report_html(short))
    assert "all stand in the Parquet" in page.text
    assert "details" not in page.tags


@pytest.mark.parametrize(
    ("values", "first"),
    [([0.0, 0.5, 1.0], 0.0), ([-0.25, 0.5, 1.0], -1.0), ([1.0000001, -1.0000001, 0.0], -1.0)],
)
def test_every_value_falls_into_one_bar(values: list[float], first: float) -> None:
    bars = histogram(values)
    assert len(bars) == BINS
    assert bars[0][0] == first
    assert sum(count for _, _, count in bars) == len(values)


def test_it_lies_beside_the_report(tmp_path, report, make_inputs) -> None:
    written = write_report(tmp_path, report, make_inputs().rows)
    assert written.html_path == written.json_path.with_suffix(".html")
    assert written.html_path.read_text(encoding="utf-8") == report_html(written.report)
