"""Targets that are called, built from their YAML, with every call made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.dataset.corpus import DocumentSet
from rag_eval_assets.progress import SILENT
from rag_eval_assets.recording.channel import Channel
from rag_eval_assets.suite.load import LoadedSuite, read_suite
from rag_eval_assets.targets.base import Answer
from rag_eval_assets.targets.registry import open_target

SUITE = """
datasets: [{sample: builtin}]
scorers: [{type: sentence_cosine}]
"""


@pytest.fixture
def suite_of(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """`suite_of(target, ...)`: a suite with that one target, `service`; keywords become further keys."""

    def make(target: dict[str, Any], **further: Any) -> LoadedSuite:
        path = tmp_path / "suite.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(SUITE), "targets": {"service": target}, **further}))
        return read_suite(path)

    return make


@pytest.fixture
def ask(suite_of: Callable[..., LoadedSuite], tmp_path: Path) -> Callable[..., Answer]:
    """`ask(target, question)`: the answer of a target, opened, prepared, asked and closed."""

    def run(target: dict[str, Any], question: str = "When?", channel: Channel | None = None) -> Answer:
        async def once() -> Answer:
            opened = open_target(suite_of(target), "service", DocumentSet(()), tmp_path, channel)
            try:
                await opened.prepare(SILENT)
                return await opened.answer(question, trial=0)
            finally:
                await opened.close()

        return asyncio.run(once())

    return run
