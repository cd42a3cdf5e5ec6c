"""Faults planted into the embedded target on purpose, to see that the figures of an evaluation move with them."""

from __future__ import annotations

import re

import numpy as np

from rag_eval_assets.suite.targets import PlantedFault
from rag_eval_assets.targets.index import Index

REFUSAL = "The documents do not say."
"""What a pipeline that refuses answers, whatever was asked."""

_DIGIT_SHIFT = 3
"""Every digit becomes the third after it: another number of as many digits, and never the same one."""


def plant_in_index(fault: PlantedFault | None, index: Index) -> Index:
    """`shuffled_index`: every passage gets the vector of another, half the corpus away, as after a broken build."""
    if fault != "shuffled_index":
        return index
    return Index(index.chunks, np.roll(index.vectors, len(index.chunks) // 2, axis=0))


def plant_in_answer(fault: PlantedFault | None, text: str | None) -> str | None:
    """`refusals`: nothing is answered; `swapped_numbers`: every number is another one."""
    if fault == "refusals":
        return REFUSAL
    if fault == "swapped_numbers" and text is not None:
        return re.sub("[0-9]", lambda digit: str((int(digit[0]) + _DIGIT_SHIFT) % 10), text)
    return text
