"""Measure the quality of a RAG system over time.

The names below are loaded on first use: `import rag_eval_assets` alone imports neither pyarrow nor torch.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_eval_assets.report.read import read_report
    from rag_eval_assets.scoring.api import score

__all__ = ["__version__", "read_report", "score"]

try:
    __version__ = version("rag-eval-assets")
except PackageNotFoundError:
    # A checkout that was never installed.
    __version__ = "0+unknown"

_HOMES = {
    "read_report": "rag_eval_assets.report.read",
    "score": "rag_eval_assets.scoring.api",
}
"""The module that each public name comes from."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
