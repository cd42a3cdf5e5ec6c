"""Matching on real web texts: every chunk finds its own context and no other."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag_eval_assets.retrieval.matching import FoldedText, MatchSettings, text_matches

DATA = Path(__file__).parents[3] / "shared" / "data" / "rag_dataset_12000_train_0_99.parquet"

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason=f"{DATA.name} is not beside the checkout")

SETTINGS = MatchSettings()


@pytest.fixture(scope="module")
def contexts() -> list[FoldedText]:
    return [FoldedText(text) for text in pq.read_table(DATA)["context"].to_pylist()]


@pytest.mark.parametrize("characters", [200, 700])
def test_chunks_find_their_own_context_and_no_other(contexts: list[FoldedText], characters: int) -> None:
    missed: list[tuple[int, int]] = []
    confused: list[tuple[int, int]] = []
    judged = 0
    for owner, context in enumerate(contexts):
        text = context.folded
        for start in range(0, len(text), characters):
            chunk = FoldedText(text[start : start + characters])
            if len(chunk.words) < SETTINGS.min_words:
                continue
            judged += 1
            if not text_matches(context, chunk, SETTINGS):
                missed.append((owner, start))
            others = range(owner + 1, owner + 11)
            confused += [(owner, o % 100) for o in others if text_matches(contexts[o % 100], chunk, SETTINGS)]
    assert judged > 500
    assert missed == []
    assert confused == []


def test_no_context_matches_another_nor_all_of_them_at_once(contexts: list[FoldedText]) -> None:
    everything = FoldedText(" ".join(context.folded for context in contexts))
    for owner, context in enumerate(contexts):
        assert text_matches(context, context, SETTINGS)
        assert not text_matches(context, everything, SETTINGS)
        assert [o for o, other in enumerate(contexts) if o != owner and text_matches(context, other, SETTINGS)] == []
