"""The real all-MiniLM-L6-v2, found on this machine, and scorers that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.weights.resolve import ResolvedModel, resolve


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests neither fill nor use a home that stands beside the checkout."""
    monkeypatch.setenv("RAG_EVAL_HOME", str(tmp_path / "no home"))


@pytest.fixture(scope="session")
def minilm() -> ResolvedModel:
    try:
        return resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")


@pytest.fixture(scope="session")
def bertscore(minilm: ResolvedModel) -> BertScore:
    return BertScore(minilm)


@pytest.fixture(scope="session")
def cosine(minilm: ResolvedModel) -> SentenceCosine:
    return SentenceCosine(minilm)
