"""The published JSON Schema of suite files accepts what the loader accepts and knows the same keys."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from rag_eval_assets.suite.load import bundled_suites
from rag_eval_assets.suite.schema import suite_json_schema


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = suite_json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def bundled(name: str) -> dict[str, Any]:
    return yaml.safe_load(bundled_suites()[name].read_text("utf-8"))


@pytest.mark.parametrize("name", ["embedded", "rag-dataset-12000"])
def test_the_packaged_suites_are_valid(validator: Draft202012Validator, name: str) -> None:
    assert [error.message for error in validator.iter_errors(bundled(name))] == []


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("datasets", 0),
        ("datasets", 0, "columns"),
        ("corpus",),
        ("targets", "pipeline"),
        ("scorers", 1),
        ("retrieval",),
    ],
)
def test_an_unknown_key_is_invalid_everywhere(validator: Draft202012Validator, place: tuple[Any, ...]) -> None:
    suite = copy.deepcopy(bundled("rag-dataset-12000"))
    node = suite
    for step in place:
        node = node[step]
    node["no_such_key"] = 1
    assert not validator.is_valid(suite)


@pytest.mark.parametrize("key", ["datasets", "targets", "scorers"])
def test_what_the_loader_requires_the_schema_requires(validator: Draft202012Validator, key: str) -> None:
    suite = bundled("embedded")
    del suite[key]
    assert not validator.is_valid(suite)


def test_every_key_of_a_suite_is_described(validator: Draft202012Validator) -> None:
    schema = suite_json_schema()
    parts = [schema, *schema["$defs"].values()]
    bare = [
        key
        for part in parts
        for key, value in part.get("properties", {}).items()  # a mode is a word, a body any JSON
        if key != "type" and not value.get("description")
    ]
    assert bare == []
