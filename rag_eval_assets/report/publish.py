"""The JSON Schema of the report, made from the models that write it; `docs/report.schema.json` is its printed form."""

from __future__ import annotations

import json
from typing import Any, cast

from rag_eval_assets.report.schema import Report


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a report file. It allows unknown fields everywhere, since minor versions may add some."""
    schema = _opened(Report.model_json_schema(mode="serialization"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def json_schema_text() -> str:
    """The schema as the text of the published file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _opened(part: Any) -> Any:
    if isinstance(part, list):
        return [_opened(item) for item in cast("list[Any]", part)]
    if isinstance(part, dict):
        entries = cast("dict[str, Any]", part).items()
        return {key: _opened(value) for key, value in entries if (key, value) != ("additionalProperties", False)}
    return part
