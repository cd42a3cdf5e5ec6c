"""The JSON Schema of a suite file, exported from the models, for editors and for the documentation."""

from __future__ import annotations

from typing import Any

from rag_eval_assets.suite.models import Suite


def suite_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a suite file."""
    schema = Suite.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rag-eval suite", **schema}
