"""The HTML page of a report: what a reviewer sees, and that nobody's text can do anything but be read."""

from __future__ import annotations

import dataclasses
import re
from enum import StrEnum
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from rag_eval_assets.report.build import build_report
from rag_eval_assets.report.html import BINS, CONTEXT_CHARACTERS, EXCLUDED_SHOWN, histogram, main_values, report_html
from rag_eval_assets.report.markdown import summary_markdown
from rag_eval_assets.report.words import EXAMPLE, RETRIEVAL, SCORE
from rag_eval_assets.report.write import write_report
from rag_eval_assets.status import AnswerStatus, MatchStatus, ScoreStatus


class Page(HTMLParser):
    """Collects what a test asks about."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.labels: list[str] = []
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
        if self.open and self.open[-1] == "text" and data.isdigit():
            self.labels.append(data)


@pytest.fixture
def page(report, rows) -> Page:
    return Page(report_html(report, rows))


def test_few_examples_are_said_to_have_no_interval(report, page: Page) -> None:
    assert report.answer_similarity_summary.bertscore_f1.ci95 is None
    assert "none below 20" in page.text
    assert "> Below 20 examples a figure has no interval." in summary_markdown(report).splitlines()


def test_question_reference_and_answer_of_every_example_stand_on_it(report, page: Page) -> None:
    for example in report.examples:
        assert example.question in page.text
        assert (example.reference_answer or "") in page.text
        assert (example.generated_answer or "") in page.text
    assert page.tags.count("details") == len(report.examples)


def test_the_expected_context_stands_beside_the_passages(rows, page: Page) -> None:
    contexts = [context for context in rows["context"].to_pylist() if context is not None]
    assert contexts and all(context in page.text for context in contexts)
    assert page.text.count("Expected context") == len(contexts)


def test_of_a_long_context_the_beginning_is_shown(report, rows) -> None:
    long = rows.set_column(rows.schema.get_field_index("context"), "context", pa.array(["w" * 5_000] * len(rows)))
    text = Page(report_html(report, long)).text
    assert text.count("w" * CONTEXT_CHARACTERS + "…") == len(rows)
    assert "w" * (CONTEXT_CHARACTERS + 1) not in text


def test_what_became_of_an_example_is_said_in_plain_words(page: Page) -> None:
    for words in (
        "found at rank 1",
        "found at rank 3, below the top 2",
        "not judged: the expected context is not known",
        "bertscore: not scored: there is no reference answer",
        "the answer is blank",
        "the call failed",
        "only the beginning was read by bertscore",
    ):
        assert words in page.text
    assert not re.search(r"\b(no_context|no_reference|no_passages|target_error|empty_answer)\b", page.text)


@pytest.mark.parametrize(
    ("words", "statuses"),
    [(EXAMPLE, AnswerStatus), (RETRIEVAL, MatchStatus), (SCORE, ScoreStatus)],
)
def test_every_status_has_words(words: dict[str, str], statuses: type[StrEnum]) -> None:
    assert set(statuses) - set(words) <= {MatchStatus.JUDGED, ScoreStatus.SCORED}


def test_rows_that_were_not_asked_are_counted_and_named(page: Page, report) -> None:
    assert "1 row excluded, which is no example:" in page.text
    assert "questions.jsonl row 6 (no question)" in page.text
    rows = [report.dataset.excluded.rows[0].model_copy(update={"row": row}) for row in range(100)]
    excluded = report.dataset.excluded.model_copy(update={"count": 150, "rows": rows})
    many = report.model_copy(update={"dataset": report.dataset.model_copy(update={"excluded": excluded})})
    text = " ".join(Page(report_html(many)).text.split())
    assert "150 rows excluded, which are no example: questions.jsonl row 0 (no question)," in text
    assert f"row {EXCLUDED_SHOWN - 1} (no question) and {150 - EXCLUDED_SHOWN} more" in text
    none = report.dataset.excluded.model_copy(update={"count": 0, "rows": []})
    whole = report.model_copy(update={"dataset": report.dataset.model_copy(update={"excluded": none})})
    assert "excluded" not in Page(report_html(whole)).text


def test_a_figure_that_is_not_there_says_why_or_is_left_out(page: Page, report) -> None:
    assert "hit rate @1" in page.text
    assert "@3" not in page.text.replace("nDCG@2", "")  # k is 2
    unjudged = report.retrieval_summary.model_copy(update={"n_judged": 0})
    assert "No example could be judged" not in page.text
    assert "No example could be judged" in report_html(report.model_copy(update={"retrieval_summary": unjudged}))


def test_the_histogram_says_how_many_examples_a_bar_stands_for(report, page: Page) -> None:
    assert sum(int(label) for label in page.labels) == sum(map(len, main_values(report).values()))


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


def test_a_report_that_lists_no_examples_says_where_they_are(make_inputs, rows) -> None:
    short = build_report(dataclasses.replace(make_inputs(), max_examples=0))
    page = Page(report_html(short, rows))
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
    assert written.html_path.read_text(encoding="utf-8") == report_html(written.report, make_inputs().rows)
