"""Facts of the machine and the libraries that bear on numbers and speed; no names of machines or users, no paths."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import numpy as np

from rag_eval_assets.report.schema import Host

PACKAGES = (
    "rag-eval-assets",
    "bert-score",
    "dagster",
    "numpy",
    "pyarrow",
    "sentence-transformers",
    "tokenizers",
    "torch",
    "transformers",
)
"""Libraries whose versions a report names."""


def host_facts() -> Host:
    """What a report says of this machine."""
    return Host(
        instruction_set=_instruction_set(),
        cpu_count=os.cpu_count() or 1,
        python=platform.python_version(),
        system=platform.system(),
        machine=platform.machine(),
    )


def package_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of those of `packages` that are installed; nothing is imported."""
    found = {name: _version(name) for name in packages}
    return {name: known for name, known in found.items() if known is not None}


@cache
def _version(package: str) -> str | None:
    """Kept, since it is read from a file and every table of a run names it; what is imported is the same all along."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _instruction_set() -> str:
    """The widest vector instructions that NumPy found on this processor, such as AVX512_SKX, or its architecture."""
    config = cast("dict[str, Any]", np.show_config(mode="dicts"))
    vectors: dict[str, list[str]] = config.get("SIMD Extensions", {})
    known = vectors.get("found") or vectors.get("baseline") or [platform.machine()]
    return known[-1]
