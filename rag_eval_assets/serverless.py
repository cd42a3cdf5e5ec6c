"""Entry point for a function service such as AWS Lambda: one event, one evaluation, its reports in the bucket.

Such a service lets a function write below `/tmp` alone and forgets that folder, so reports and tables should go to S3.
"""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import DEFAULT_SUITE, load_suite

HOME = "/tmp/rag-eval"  # the only place that a function may write to
"""`RAG_EVAL_HOME` where none is set."""


class Event(BaseModel):
    """What an event may hold; an empty one evaluates the packaged suite for today."""

    model_config = ConfigDict(extra="forbid", strict=True)

    suite: str = Field(default=DEFAULT_SUITE, description="A packaged suite, or a suite file of the function's image.")
    run_date: str | None = Field(default=None, description="YYYY-MM-DD; by default today, UTC.")
    target: str | list[str] | None = Field(default=None, description="Only these targets; by default all.")
    limit: int | None = Field(default=None, description="Only the first so many examples.")


def handler(event: dict[str, Any] | None, context: object = None) -> dict[str, Any]:
    """Evaluate what `event` tells.

    Args:
        event: keys `suite`, `run_date`, `target`, `limit`, all of them optional (`Event`).
        context: of the function service; not used.

    Returns:
        What `rag-eval run --json` prints: `reports`, each with its URI under `report` and its `summary`, and where
        there is one, its fields at top level; `seconds`, `calls`.

    Raises:
        ConfigurationError: the event or a setting cannot be used; nothing was spent.
        EvalError: a stage failed; the service then counts the invocation as failed and may repeat it.
    """
    del context
    os.environ.setdefault("RAG_EVAL_HOME", HOME)
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    from rag_eval_assets.invocation import make_request, result_json, run_request
    from rag_eval_assets.progress import SILENT

    try:
        told = Event.model_validate(event or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigurationError(
            f"the event's {'.'.join(map(str, first['loc']))!r} cannot be used: {first['msg']}",
            fix=f"Its keys: {', '.join(Event.model_fields)}",
        ) from error
    targets = [told.target] if isinstance(told.target, str) else told.target
    request = make_request(load_suite(told.suite), run_date=told.run_date, targets=targets, limit=told.limit)
    done = run_request(request, SILENT)
    if done.failures:
        raise done.failures[0]
    return result_json(done.reports)
