"""The published JSON Schema is the one of the code, and reports obey it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from rag_eval_assets.report.publish import json_schema, json_schema_text
from rag_eval_assets.report.schema import Report

PUBLISHED = Path(__file__).parents[2] / "docs" / "report.schema.json"


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == json_schema_text(), (
        "write rag_eval_assets.report.publish.json_schema_text() to docs/report.schema.json"
    )


def test_the_schema_is_a_valid_one_and_reports_obey_it(report) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    jsonschema.validate(report.to_json(), json_schema(), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "path",
    [
        ("run_id",),
        ("dataset", "n_examples"),
        ("retrieval_summary", "hit_rate@3"),
        ("retrieval_summary", "ndcg@k"),
        ("answer_similarity_summary", "sentence_cosine"),
        ("answer_similarity_summary", "bertscore_f1", "p90"),
        ("examples", 0, "answer_similarity", "bertscore", "f1"),
    ],
)
def test_the_schema_demands_what_the_contract_requires(report, path) -> None:
    values = report.to_json()
    part = values
    for step in path[:-1]:
        part = part[step]
    del part[path[-1]]
    with pytest.raises(jsonschema.ValidationError, match=f"'{path[-1]}' is a required property"):
        jsonschema.validate(values, json_schema(), cls=jsonschema.Draft202012Validator)


def test_a_later_minor_version_with_further_fields_obeys_it_too(report) -> None:
    values = json.loads(json.dumps(report.to_json()))
    values["schema_version"] = "1.4.0"
    values["later"] = {"any": 1}
    values["examples"][0]["later"] = [1]
    jsonschema.validate(values, json_schema(), cls=jsonschema.Draft202012Validator)


def test_writing_refuses_a_field_that_the_schema_does_not_know(report) -> None:
    values = copy.deepcopy(report.to_json())
    values["counts"]["atempted"] = 1
    with pytest.raises(ValidationError, match="atempted"):
        Report.model_validate(values)


def test_further_scores_are_numbers(report) -> None:
    values = report.to_json()
    values["examples"][0]["answer_similarity"]["exact_score"] = "high"
    with pytest.raises(ValidationError, match="exact_score"):
        Report.model_validate(values)
