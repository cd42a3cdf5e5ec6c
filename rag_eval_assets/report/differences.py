"""What differs between two reports: what was asked, what answered and scored, the figures, the releases."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from itertools import chain
from typing import Any, cast

COMPARED = (
    "suite",
    "target",
    "dataset",
    "corpus",
    "models",
    "counts",
    "retrieval_summary",
    "answer_similarity_summary",
    "gates",
    "notes",
)
COMPARED_OF_RUN = ("run_date", "env", "versions", "host", "origin")
"""Of `run`; its times and ids always differ."""

SHOWN = 60


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """One line for each value that differs, `field: before -> after`, and one for the examples.

    Args:
        before, after: reports as plain JSON values (`read.load_report`).
    """
    found = [line for name in COMPARED for line in _walk(name, before.get(name), after.get(name))]
    found += [
        line
        for name in COMPARED_OF_RUN
        for line in _walk(f"run.{name}", before["run"].get(name), after["run"].get(name))
    ]
    return [*found, *_examples(before, after)]


def _walk(name: str, before: Any, after: Any) -> Generator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        one, other = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for key in dict.fromkeys(chain(one, other)):
            yield from _walk(f"{name}.{key}", one.get(key), other.get(key))
    elif before != after:
        yield f"{name}: {_shown(before)} -> {_shown(after)}"


def _examples(before: Mapping[str, Any], after: Mapping[str, Any]) -> Generator[str]:
    if before["examples_sha256"] == after["examples_sha256"]:
        return
    if before["examples_truncated"] or after["examples_truncated"]:
        yield "examples: they differ, and are not listed in the reports"
        return
    one, other = ({example["id"]: example for example in report["examples"]} for report in (before, after))
    common = [name for name in one if name in other]
    answers = sum(one[name]["generated_answer"] != other[name]["generated_answer"] for name in common)
    scores = sum(one[name]["answer_similarity"] != other[name]["answer_similarity"] for name in common)
    yield (
        f"examples: {len(common)} in both, of these {answers} with another answer and {scores} with other scores; "
        f"{len(one) - len(common)} only before, {len(other) - len(common)} only after"
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
