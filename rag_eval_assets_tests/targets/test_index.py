"""The index: exact search with ties in corpus order, embedded once, and never read from a damaged file."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from rag_eval_assets.dataset.corpus import Document, DocumentSet
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.suite.targets import Chunking
from rag_eval_assets.targets.chunking import Chunk
from rag_eval_assets.targets.index import EMBEDDED_AT_ONCE, Index, Vectors, index_fingerprint, load_or_build_index

MODEL = {"id": "m", "weights_sha256": "0"}


def chunks(count: int) -> tuple[Chunk, ...]:
    return tuple(Chunk(f"d#{number}", "d", (f"text {number}",)) for number in range(count))


def unit_vectors(count: int, dimensions: int, seed: int = 0) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class CountingEncoder:
    """Unit vectors drawn from the text alone; remembers how many texts it was given, in all and at most at once."""

    def __init__(self) -> None:
        self.texts = self.largest = 0

    def encode(self, texts: list[str]) -> Vectors:
        self.texts += len(texts)
        self.largest = max(self.largest, len(texts))
        return np.concatenate([unit_vectors(1, 12, seed=sum(map(ord, text))) for text in texts])


def load(file: Path, count: int, encoder: CountingEncoder) -> tuple[Index, int]:
    """The index, and how far the progress came."""
    advanced: list[int] = []
    index = load_or_build_index(file, chunks(count), encoder, advanced.append)
    return index, sum(advanced)


def test_search_gives_the_nearest_best_first() -> None:
    vectors = unit_vectors(50, 8)
    found = Index(chunks(50), vectors).search(vectors[17], 5)
    expected = sorted(range(50), key=lambda row: -float(vectors[row] @ vectors[17]))[:5]
    assert [chunk.id for chunk, _ in found] == [f"d#{row}" for row in expected]
    assert found[0][1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("rows", [2, 3, 9, 17, 100, 1001])
@pytest.mark.parametrize("dimensions", [3, 384])
def test_equal_passages_have_equal_scores_and_stand_in_corpus_order(rows: int, dimensions: int) -> None:
    vectors = unit_vectors(rows, dimensions)
    query = unit_vectors(1, dimensions, seed=1)[0]
    same = [0, rows // 2, rows - 1]
    vectors[same] = 2 * query + 0.1 * vectors[0]  # nearer than all others, and no round number
    found = Index(chunks(rows), vectors).search(query, rows)
    ties = list(dict.fromkeys(same))
    assert [chunk.id for chunk, _ in found[: len(ties)]] == [f"d#{row}" for row in ties]
    assert len({score for _, score in found[: len(ties)]}) == 1


def test_a_score_does_not_depend_on_what_else_is_in_the_corpus() -> None:
    vectors, query = unit_vectors(101, 384), unit_vectors(1, 384, seed=1)[0]
    among_all = {chunk.id: score for chunk, score in Index(chunks(101), vectors).search(query, 101)}
    for row in (0, 50, 100):
        [(_, alone)] = Index(chunks(1), vectors[row : row + 1]).search(query, 1)
        assert alone == among_all[f"d#{row}"]


def as_before(vectors: Vectors, query: Vectors, k: int) -> list[tuple[str, float]]:
    """The nearest by sorting all scores: the meaning of a search."""
    scores = np.vecdot(vectors, query)
    best = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return [(f"d#{row}", float(scores[row])) for row in best]


@pytest.mark.parametrize(("rows", "k"), [(1, 1), (7, 3), (1024, 5), (1025, 5), (5000, 1), (5000, 40), (5000, 5000)])
def test_questions_together_find_what_each_finds_alone(rows: int, k: int) -> None:
    vectors, queries = unit_vectors(rows, 24), unit_vectors(9, 24, seed=1)
    vectors[rows // 3] = vectors[rows - 1]  # a tie across blocks
    queries[4] = vectors[rows - 1]
    index = Index(chunks(rows), vectors)
    together = index.search_many(queries, k)
    assert together == [index.search(query, k) for query in queries]
    assert [[(chunk.id, score) for chunk, score in found] for found in together] == [
        as_before(vectors, query, k) for query in queries
    ]


def test_where_all_passages_are_equal_the_first_ones_are_found() -> None:
    vectors = np.repeat(unit_vectors(1, 24), 5000, axis=0)
    found = Index(chunks(5000), vectors).search(unit_vectors(1, 24, seed=1)[0], 3)
    assert [chunk.id for chunk, _ in found] == ["d#0", "d#1", "d#2"]


def test_more_questions_than_have_scores_in_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, queries = unit_vectors(50, 8), unit_vectors(7, 8, seed=1)
    whole = Index(chunks(50), vectors).search_many(queries, 4)
    for scores in (1, 50, 120):
        monkeypatch.setattr("rag_eval_assets.targets.index._MOST_SCORES", scores)
        assert Index(chunks(50), vectors).search_many(queries, 4) == whole


def test_an_empty_corpus_and_no_question_find_nothing(tmp_path: Path) -> None:
    empty, _ = load(tmp_path / "i.vectors", 0, CountingEncoder())
    assert empty.search(unit_vectors(1, 1)[0], 3) == []
    assert load(tmp_path / "i.vectors", 0, CountingEncoder())[0].vectors.shape == (0, 1)
    assert Index(chunks(3), unit_vectors(3, 8)).search_many(unit_vectors(0, 8), 3) == []


def test_asking_for_more_than_there_is_gives_all() -> None:
    assert len(Index(chunks(3), unit_vectors(3, 8)).search(unit_vectors(1, 8)[0], 1000)) == 3


def test_the_passages_are_embedded_once(tmp_path: Path) -> None:
    file, first, second = tmp_path / "cache" / "i.vectors", CountingEncoder(), CountingEncoder()
    built, advanced = load(file, 50, first)
    assert (first.texts, advanced) == (50, 50)
    found, advanced = load(file, 50, second)
    assert (second.texts, advanced) == (0, 50)
    assert found.vectors.tobytes() == built.vectors.tobytes()


def test_passages_are_embedded_and_written_in_blocks(tmp_path: Path) -> None:
    file, encoder = tmp_path / "i.vectors", CountingEncoder()
    index, advanced = load(file, 2 * EMBEDDED_AT_ONCE + 1, encoder)
    assert advanced == encoder.texts == 2 * EMBEDDED_AT_ONCE + 1
    assert encoder.largest == EMBEDDED_AT_ONCE
    every = CountingEncoder().encode([chunk.text for chunk in chunks(advanced)])
    assert index.vectors.tobytes() == every.tobytes()
    plain = io.BytesIO()
    np.save(plain, every)
    assert file.read_bytes() == hashlib.sha256(plain.getvalue()).digest() + plain.getvalue()


def test_the_vectors_are_mapped_and_survive_the_files_replacement(tmp_path: Path) -> None:
    file = tmp_path / "i.vectors"
    built, _ = load(file, 5, CountingEncoder())
    kept, _ = load(file, 5, CountingEncoder())
    assert all(isinstance(index.vectors.base, np.memmap) for index in (built, kept))
    before = kept.vectors.tobytes()
    file.unlink()
    load(file, 6, CountingEncoder())
    assert kept.vectors.tobytes() == before


def test_an_interrupted_build_leaves_no_file(tmp_path: Path) -> None:
    class Stopped(CountingEncoder):
        def encode(self, texts: list[str]) -> Vectors:
            if self.texts:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "i.vectors", EMBEDDED_AT_ONCE + 1, Stopped())
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_any_damage_is_built_anew(tmp_path: Path) -> None:
    file = tmp_path / "i.vectors"
    vectors = load(file, 5, CountingEncoder())[0].vectors
    intact = file.read_bytes()
    damaged = [b"", intact[:10], intact[:-1], intact[:100], intact + b"x", b"\x93NUMPY" + intact, bytes(len(intact))]
    places = (0, 31, 32, 40, 60, 160, len(intact) - 1)
    flipped = [intact[:place] + bytes([intact[place] ^ 1]) + intact[place + 1 :] for place in places]
    for content in damaged + flipped:
        file.unlink()  # a file that is mapped must not be written into
        file.write_bytes(content)
        encoder = CountingEncoder()
        assert load(file, 5, encoder)[0].vectors.tobytes() == vectors.tobytes()
        assert encoder.texts == 5
        assert file.read_bytes() == intact


def test_an_index_of_another_number_of_passages_is_built_anew(tmp_path: Path) -> None:
    load(tmp_path / "i.vectors", 5, CountingEncoder())
    encoder = CountingEncoder()
    assert len(load(tmp_path / "i.vectors", 6, encoder)[0].vectors) == 6
    assert encoder.texts == 6


def test_a_cache_that_cannot_be_written_is_an_infrastructure_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match=r"cannot write 'i\.vectors'"):
        load(tmp_path / "file" / "i.vectors", 5, CountingEncoder())


def test_the_fingerprint_sees_documents_cutting_and_model() -> None:
    one, two = DocumentSet((Document("a", None, "x"),)), DocumentSet((Document("a", None, "y"),))
    fingerprints = {
        index_fingerprint(one, Chunking(), MODEL),
        index_fingerprint(two, Chunking(), MODEL),
        index_fingerprint(one, Chunking(max_words=60), MODEL),
        index_fingerprint(one, Chunking(overlap_sentences=0), MODEL),
        index_fingerprint(one, Chunking(), {**MODEL, "weights_sha256": "1"}),
    }
    assert len(fingerprints) == 5
    assert index_fingerprint(one, Chunking(), MODEL) in fingerprints
