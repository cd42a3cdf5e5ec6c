"""Text of others on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_assets.terminal import sanitize

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb", "a b"),
        ("a\r\nb", r"a\r\nb"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x00\x7f\x85\x9b", r"\x00\x7f\x85\x9b"),
        ("\u202e\u2066\u200e\u061c", r"\u{202e}\u{2066}\u{200e}\u{061c}"),
        ("\u2028\u2029", r"\u{2028}\u{2029}"),
        ("\ud800", r"\u{d800}"),
        ("क्\u200dष \u200c é 👩\u200d🔬 \\n \u00a0", "क्\u200dष \u200c é 👩\u200d🔬 \\n \u00a0"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert sanitize(text) == shown


@unhurried
@given(st.text())
def test_the_result_is_one_line_that_can_be_written(text: str) -> None:
    shown = sanitize(text)
    assert len(shown.splitlines()) <= 1
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert sanitize(shown) == shown
