"""What makes two reports equal: the hash over all that equal inputs make equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_eval_assets.canonical import content_hash

NOT_CONTENT = frozenset({"run", "run_id", "timestamp", "measured_at", "examples_table", "content_sha256"})
"""Top-level fields outside the hash. The Parquet's name holds the run id and its bytes depend on the library that
wrote them; its rows are covered by `examples_sha256`."""


def report_content_hash(report: Mapping[str, Any]) -> str:
    """`content_sha256` of a report given as plain JSON values, fields of later minor versions included."""
    return content_hash({name: value for name, value in report.items() if name not in NOT_CONTENT})
