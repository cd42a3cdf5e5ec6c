"""The picture of a report's scores."""

from __future__ import annotations

import base64
import struct

import pytest

from rag_eval_assets.report.chart import as_markdown, score_chart

SPREAD = {"bertscore_f1": [0.1, 0.5, 0.9], "sentence_cosine": [-0.2, 0.4, 1.0]}
TREND = {
    "2026-03-01": {"bertscore_f1": 0.5, "sentence_cosine": 0.4, "top_k_match_rate": 0.9},
    "2026-03-02": {"bertscore_f1": 0.6, "sentence_cosine": None, "top_k_match_rate": 0.9},
}


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_it_is_a_picture_small_enough_for_an_event_log() -> None:
    png = score_chart(SPREAD, TREND)
    assert size(png) == (640, 192)
    assert len(png) < 40_000


def test_equal_figures_give_equal_bytes_and_others_do_not() -> None:
    assert score_chart(SPREAD, TREND) == score_chart(SPREAD, TREND)
    assert score_chart(SPREAD, TREND) != score_chart({**SPREAD, "bertscore_f1": [0.2, 0.5, 0.9]}, TREND)
    assert score_chart(SPREAD, TREND) != score_chart(SPREAD, {"2026-03-01": TREND["2026-03-01"]})


@pytest.mark.parametrize(("values", "trend"), [({}, {}), ({"bertscore_f1": [0.5]}, {}), ({}, {"2026-03-01": {}})])
def test_it_can_be_drawn_where_there_is_little_or_nothing(values, trend) -> None:
    assert size(score_chart(values, trend)) == (640, 192)


def test_as_markdown_it_needs_no_other_file() -> None:
    png = score_chart({}, {})
    text = as_markdown(png, "scores")
    assert text.startswith("![scores](data:image/png;base64,")
    assert base64.b64decode(text.split(",", 1)[1].removesuffix(")")) == png
