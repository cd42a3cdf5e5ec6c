"""A text's vectors depend on its tokens alone: not on its batch, its neighbours, their order, budgets or workers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.encoder import kernels
from rag_eval_assets.scoring.encoder.device import Device, find_device, instructions
from rag_eval_assets.scoring.encoder.encoder import PackedEncoder, Wanted, load_packed
from rag_eval_assets.scoring.encoder.fingerprint import fingerprint
from rag_eval_assets.scoring.encoder.tokens import Ids
from rag_eval_assets.weights.resolve import ResolvedModel

CPU = Device("cpu", instructions())
LENGTHS = [2, 3, 4, 5, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 257, 511, 512]


def drawn(length: int, seed: int) -> Ids:
    """Token ids of a text; random ones, since no operation looks at what they mean."""
    inner = np.random.default_rng([length, seed]).integers(1000, 30000, length - 2)
    return np.concatenate([[101], inner, [102]]).astype(np.int32)


def rows_and_vectors(
    encoder: PackedEncoder, texts: list[Ids], *, most: int | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    with encoder.workers() as workers:
        pending = encoder.submit(workers, texts, Wanted(rows=True, vectors=True), last=most is None, most=most)
        results = [entry.result() for entry in pending]
    return [(entry.rows.numpy().copy(), entry.vector) for entry in results if entry.rows is not None]


class Company(dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]):
    """What each text gave alone; told in one word where a property fails."""

    def __repr__(self) -> str:
        return "Company"


@pytest.fixture(scope="module", params=["fp32", "bf16"])
def encoder(request: pytest.FixtureRequest, minilm: ResolvedModel) -> PackedEncoder:
    return load_packed(minilm, 3, request.param, CPU)


@pytest.fixture(scope="module")
def alone(encoder: PackedEncoder) -> Company:
    """Each text encoded in a call of its own."""
    texts = [(length, seed) for length in LENGTHS for seed in range(2)]
    return Company({text: rows_and_vectors(encoder, [drawn(*text)])[0] for text in texts})


def assert_same(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> None:
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(st.tuples(st.sampled_from(LENGTHS), st.integers(0, 1)), min_size=1, max_size=24),
    most=st.sampled_from([None, 1, 16, 100, 512, 1024, 5000]),
    threads=st.sampled_from([1, 2, 3]),
)
def test_any_company_order_budget_and_number_of_workers_give_the_same_bits(
    encoder: PackedEncoder,
    alone: Company,
    chosen: list[tuple[int, int]],
    most: int | None,
    threads: int,
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = rows_and_vectors(encoder, [drawn(*text) for text in chosen], most=most)
    finally:
        torch.set_num_threads(before)
    for text, entry in zip(chosen, found, strict=True):
        assert_same(entry, alone[text])


def test_rows_and_vectors_have_unit_length(alone: Company) -> None:
    for (length, _), (rows, vector) in alone.items():
        assert rows.shape == (length, 384)
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-6)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_without_torchs_private_operators_values_are_the_same_to_rounding_and_keep_to_their_text(
    minilm: ResolvedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [drawn(length, 0) for length in (3, 16, 40, 40, 200)]
    packed = rows_and_vectors(PackedEncoder(minilm, 3, "fp32", CPU), texts)
    monkeypatch.setattr(kernels, "has_packed_linear", lambda _: False)
    encoder = PackedEncoder(minilm, 3, "fp32", CPU)
    plain = rows_and_vectors(encoder, texts)
    for one, other in zip(packed, plain, strict=True):
        assert one[0] == pytest.approx(other[0], abs=1e-5)
        assert one[1] == pytest.approx(other[1], abs=1e-6)
    random.Random(1).shuffle(texts)
    for ids, entry in zip(texts, rows_and_vectors(encoder, texts, most=64), strict=True):
        assert_same(rows_and_vectors(encoder, [ids])[0], entry)


def test_this_torch_has_the_operators() -> None:
    """Where a new release of torch drops them, scoring still works, a tenth slower; somebody should know."""
    assert kernels.has_packed_linear(torch.float32)


def test_a_fingerprint_changes_with_whatever_moves_a_bit(minilm: ResolvedModel, tmp_path: Path) -> None:
    made = [
        fingerprint(minilm, layer=6, precision="fp32", device=CPU),
        fingerprint(minilm, layer=5, precision="fp32", device=CPU),
        fingerprint(minilm, layer=6, precision="bf16", device=CPU),
        fingerprint(minilm, layer=6, precision="fp32", device=Device("cpu", "another processor")),
        fingerprint(minilm, layer=6, precision="fp32", device=Device("cuda", "a GPU")),
    ]
    (tmp_path / "config.json").write_text("{}")
    made.append(fingerprint(ResolvedModel(minilm.pin, tmp_path, "folder"), layer=6, precision="fp32", device=CPU))
    assert len({entry.digest for entry in made}) == len(made)
    assert fingerprint(minilm, layer=6, precision="fp32", device=CPU).digest == made[0].digest


def test_a_device_that_is_not_there_falls_back_to_the_cpu_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    monkeypatch.setenv("RAG_EVAL_DEVICE", missing)
    assert find_device().describe() == {
        "device": "cpu",
        "device_name": instructions(),
        "device_note": f"{missing} was asked for, and torch finds no such device",
    }
    monkeypatch.setenv("RAG_EVAL_DEVICE", "tpu")
    with pytest.raises(ConfigurationError, match=r"'tpu'.*auto, cpu, cuda, mps"):
        find_device()


def test_a_gpu_gives_the_cpus_values_to_rounding(minilm: ResolvedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_EVAL_DEVICE", raising=False)
    device = find_device()
    if device.kind == "cpu":
        pytest.skip("needs a GPU that torch can use")
    texts = [drawn(length, 0) for length in LENGTHS]
    for one, other in zip(
        load_packed(minilm, 6, "fp32", device).vectors(texts),
        load_packed(minilm, 6, "fp32", CPU).vectors(texts),
        strict=True,
    ):
        assert one == pytest.approx(other, abs=1e-4)
