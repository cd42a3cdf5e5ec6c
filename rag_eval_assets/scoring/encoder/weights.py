"""A BERT encoder's tensors from `model.safetensors`: only the layers that are computed, under either of their names."""

# safetensors has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval_assets.errors import ConfigurationError

if TYPE_CHECKING:
    from torch import Tensor

_OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
"""Files made from the first release of BERT, such as bert-base-uncased, still name them so."""

_PREFIXES = ("", "bert.")
"""Models that were saved with a head have their encoder's tensors under a prefix."""


class Tensors:
    """The tensors of one open file, by the names of `transformers.BertModel`."""

    def __init__(self, opened: Any, file: Path) -> None:
        self._opened = opened
        self._names = frozenset(opened.keys())
        self._file = file

    def get(self, name: str) -> Tensor:
        """The tensor `name`, mapped from the file and not yet read.

        Raises:
            ConfigurationError: the file holds no such tensor.
        """
        for prefix in _PREFIXES:
            for old, new in (("", ""), *_OLD_NAMES.items()):
                found = prefix + (name.replace(old, new) if old and name.endswith(old) else name)
                if found in self._names:
                    return self._opened.get_tensor(found)
        raise ConfigurationError(f"{self._file} holds no tensor {name!r}", fix="It is no encoder of the BERT family")


@contextmanager
def open_tensors(file: Path) -> Generator[Tensors]:
    """Open `file` for a `with` block. Its pages leave memory with the last tensor that was got from it."""
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        yield Tensors(opened, file)
