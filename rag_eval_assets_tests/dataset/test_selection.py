"""Choosing rows in the suite: the same rows in every run, in the order of the data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite, read_suite


@pytest.fixture
def suite_of(tmp_path) -> Callable[..., LoadedSuite]:
    """A suite over thirty rows (German ones at every third place) with the given choice."""

    def make(rows: int = 30, **choice: Any) -> LoadedSuite:
        import json

        lines = [
            {"id": f"r{n}", "lang": "de" if n % 3 == 0 else "en", "question": f"q{n}?", "context": f"context {n}"}
            for n in range(rows)
        ]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        content = {
            "datasets": [{"file": "rows.jsonl", **choice}],
            "corpus": {"source": "contexts"},
            "targets": {"p": {"type": "embedded"}},
            "scorers": [{"type": "sentence_cosine"}],
        }
        path = tmp_path / "suite.yaml"
        path.write_text(json.dumps(content), encoding="utf-8")
        return read_suite(path)

    return make


def ids(suite: LoadedSuite, **options: Any) -> list[str]:
    return load_examples(suite, **options).table.column("example_id").to_pylist()


def test_a_condition_keeps_the_rows_that_have_the_value(suite_of) -> None:
    assert ids(suite_of(where={"lang": "de"})) == [f"r{n}" for n in range(0, 30, 3)]


def test_a_condition_may_list_values_and_columns(suite_of) -> None:
    assert ids(suite_of(where={"lang": ["de", "en"]})) == [f"r{n}" for n in range(30)]
    assert ids(suite_of(where={"lang": "de", "id": ["r3", "r4"]})) == ["r3"]


def test_a_condition_on_a_column_that_is_not_there_names_it(suite_of) -> None:
    with pytest.raises(ConfigurationError, match="no column 'langauge', which 'where' names; it has 'id', 'lang'"):
        load_examples(suite_of(where={"langauge": "de"}))


def test_a_condition_that_no_row_meets_is_an_error_and_not_an_empty_run(suite_of) -> None:
    with pytest.raises(ConfigurationError, match="hold no example"):
        load_examples(suite_of(where={"lang": "fr"}))


def test_a_sample_is_the_same_in_every_run_and_keeps_the_order(suite_of) -> None:
    drawn = ids(suite_of(random_sample={"size": 7, "seed": 3}))
    assert len(drawn) == 7
    assert drawn == sorted(drawn, key=lambda name: int(name[1:]))
    assert ids(suite_of(random_sample={"size": 7, "seed": 3})) == drawn
    assert ids(suite_of(random_sample={"size": 7, "seed": 4})) != drawn
    assert drawn != [f"r{n}" for n in range(7)]


def test_rows_that_are_added_push_drawn_ones_out_only_where_they_are_drawn_themselves(suite_of) -> None:
    before = set(ids(suite_of(rows=30, random_sample={"size": 10})))
    after = set(ids(suite_of(rows=40, random_sample={"size": 10})))
    new = {name for name in after if int(name[1:]) >= 30}
    assert len(before - after) == len(new)


def test_a_sample_larger_than_the_data_set_is_the_data_set(suite_of) -> None:
    assert len(ids(suite_of(random_sample={"size": 500}))) == 30


def test_condition_sample_and_limit_apply_in_this_order(suite_of) -> None:
    drawn = ids(suite_of(where={"lang": "en"}, random_sample={"size": 6, "seed": 1}))
    assert ids(suite_of(where={"lang": "en"}, random_sample={"size": 6, "seed": 1}, limit=4)) == drawn[:4]
    assert all(int(name[1:]) % 3 for name in drawn)


def test_the_limit_of_a_run_comes_on_top(suite_of) -> None:
    assert ids(suite_of(limit=5), limit=2) == ["r0", "r1"]


def test_the_corpus_holds_the_contexts_of_all_rows(suite_of) -> None:
    suite = suite_of(where={"lang": "de"}, random_sample={"size": 2}, limit=1)
    assert len(load_corpus(suite).documents) == 30, "fewer documents would make retrieval easier than it is"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"limit": 0}, "limit: input should be greater than or equal to 1"),
        ({"random_sample": {"size": 0}}, "random_sample.size: input should be greater than or equal to 1"),
        ({"random_sample": {"seed": 1}}, "random_sample.size: is required"),
        ({"where": {"lang": 3}}, "where.lang"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(suite_of, choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        suite_of(**choice)


def test_what_was_chosen_is_told_in_words(suite_of) -> None:
    chosen = load_examples(suite_of(where={"lang": ["de", "en"]}, random_sample={"size": 6, "seed": 1}, limit=4))
    assert chosen.selection == "lang is de or en, of these a random sample of 6 (seed 1), of these the first 4"
    assert load_examples(suite_of()).selection is None
