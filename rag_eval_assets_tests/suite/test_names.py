"""Names become slugs, and two things that would overwrite each other are told apart before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import load_suites, read_suite
from rag_eval_assets.suite.names import BUILT_IN_ASSETS, distinct_slugs, slug

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "made"),
    [("embedded", "embedded"), ("RAG dataset 12,000", "rag_dataset_12_000"), ("--a--", "a"), ("Zürich 1", "z_rich_1")],
)
def test_a_slug_is_lower_case_letters_digits_and_underscores(name: str, made: str) -> None:
    assert slug(name, what="suite") == made


@settings(deadline=None)
@given(st.text())
def test_every_name_has_a_slug_or_a_clear_error(name: str) -> None:
    try:
        made = slug(name, what="suite")
    except ConfigurationError as error:
        assert "holds no letter a-z and no digit" in error.message
    else:
        assert made == slug(made, what="suite")
        assert made.replace("_", "a").isalnum() and made.isascii()


def test_two_suites_with_one_slug_are_named_with_their_files(write_suite: Write, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    first, second = write_suite("x/s.yaml", name="a b/c"), write_suite("y/s.yaml", name="a-b-c")
    with pytest.raises(ConfigurationError) as caught:
        load_suites(os.pathsep.join([str(first), str(second)]))
    assert f"'a b/c' ({first}) and 'a-b-c' ({second}) both become 'a_b_c'" in str(caught.value)


def test_two_targets_with_one_slug_are_named_with_the_file(write_suite: Write) -> None:
    path = write_suite(targets="{a b/c: {type: embedded}, a-b-c: {type: embedded}}")
    with pytest.raises(ConfigurationError) as caught:
        read_suite(path)
    assert str(caught.value).startswith(f"{path}: target names 'a b/c' and 'a-b-c' both become 'a_b_c'")


@pytest.mark.parametrize("name", sorted(BUILT_IN_ASSETS))
def test_a_target_cannot_have_the_name_of_an_asset(name: str) -> None:
    spoken = name.replace("_", " ").title()
    with pytest.raises(ConfigurationError, match=f"becomes {name!r}, which is the name of a built-in asset"):
        distinct_slugs(["fine", spoken], what="target")


def test_the_assets_of_the_lineage_are_reserved() -> None:
    lineage = {"corpus", "eval_examples", "generated_answers", "call_log", "retrieval_matches", "bertscore"}
    assert lineage | {"sentence_cosine", "eval_report", "score_history", "target_comparison"} <= BUILT_IN_ASSETS


def test_a_suite_may_have_the_name_of_an_asset(write_suite: Write) -> None:
    assert read_suite(write_suite("corpus.yaml")).slug == "corpus"


def test_a_name_without_a_letter_or_digit_is_a_fault_of_the_file(write_suite: Write) -> None:
    path = write_suite(name="'…'")
    with pytest.raises(ConfigurationError) as caught:
        read_suite(path)
    assert str(caught.value).startswith(f"{path}: suite name '…' holds no letter a-z and no digit")
