"""What a result was measured on: processor, cores, and versions. No name of a machine and no path."""

from __future__ import annotations

import os
import platform
from typing import Any

from rag_eval_assets.scoring.base import library_versions
from rag_eval_assets.scoring.encoder.device import instructions

LIBRARIES = ("torch", "transformers", "tokenizers", "bert-score", "sentence-transformers", "torchmetrics", "numpy")


def describe() -> dict[str, Any]:
    """Processor's instruction sets, cores that this process may use, and versions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "instructions": instructions(),
        "cores": cores,
        "python": platform.python_version(),
        "libraries": library_versions("rag-eval-assets", *LIBRARIES),
    }
