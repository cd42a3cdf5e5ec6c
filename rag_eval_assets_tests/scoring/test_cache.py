"""The scoring caches: values come back to the last bit, budgets are apart, and a lookup needs no model library."""

from __future__ import annotations

import math
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.base import PairScore
from rag_eval_assets.scoring.cache import (
    LIMIT_VARIABLE,
    cache_folder,
    decode_array,
    decode_score,
    describe_events,
    encode_array,
    encode_score,
    open_caches,
    open_stores,
)
from rag_eval_assets.status import ScoreStatus

SCORE = PairScore(ScoreStatus.SCORED, truncated=True, values={"precision": 0.1 + 0.2, "recall": -0.0, "f1": 5e-324})


@pytest.fixture(autouse=True)
def default_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(
    st.sampled_from(ScoreStatus),
    st.booleans(),
    st.none() | st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False), max_size=3),
    st.none() | st.text(max_size=20),
)
def test_a_score_comes_back_to_the_last_bit(status, truncated, values, detail) -> None:
    score = PairScore(status, truncated, values, detail)
    back = decode_score(encode_score(score))
    assert back == score
    assert type(back.status) is ScoreStatus
    assert {name: bits(value) for name, value in (back.values or {}).items()} == {
        name: bits(value) for name, value in (values or {}).items()
    }


@pytest.mark.parametrize("shape", [(384,), (17, 768), (0, 768), (1, 1)])
def test_an_array_comes_back_to_the_last_bit_and_may_be_changed(shape: tuple[int, ...]) -> None:
    array = np.frombuffer(np.random.default_rng(0).bytes(4 * math.prod(shape)), "<f4").reshape(shape)  # NaNs among them
    back = decode_array(encode_array(array))
    assert (back.dtype, back.shape, back.tobytes()) == (np.float32, shape, array.tobytes())
    assert back.flags.writeable
    assert back.flags.c_contiguous


def test_a_view_is_stored_as_what_it_shows() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert decode_array(encode_array(array[::2, ::3])).tolist() == array[::2, ::3].tolist()


def test_results_stand_in_the_order_of_the_keys(tmp_path: Path) -> None:
    stores = open_stores(tmp_path)
    other = PairScore(ScoreStatus.UNTOKENIZABLE, detail="the candidate holds no token")
    stores.scores.put_many({b"a": SCORE, b"b": other})
    assert stores.scores.get_many([b"b", b"none", b"a", b"b"]) == [other, None, SCORE, other]
    vector = np.ones(3, np.float32)
    stores.vectors.put_many({b"a": vector})
    [found, missing] = stores.vectors.get_many([b"a", b"b"])
    assert found is not None
    assert found.tolist() == [1, 1, 1]
    assert missing is None


def test_a_folder_has_one_set_of_caches_per_process(tmp_path: Path) -> None:
    assert open_caches(tmp_path) is open_caches(tmp_path)
    assert open_caches(tmp_path) is not open_caches(tmp_path / "other")
    assert open_stores(tmp_path) is open_caches(tmp_path).stores


def test_each_kind_has_its_share_of_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "160")
    limits = {name: file.limit for name, file in open_caches(tmp_path).files.items()}
    assert limits == {"scores": 10_000_000, "vectors": 30_000_000, "tokens": 120_000_000}


def test_a_limit_of_0_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    stores = open_stores(tmp_path / "cache")
    stores.scores.put_many({b"a": SCORE})
    assert stores.scores.get_many([b"a"]) == [None]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("wrong", ["-1", "1.5", "2 GB", "²"])
def test_a_limit_that_is_no_number_is_refused(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, wrong)
    with pytest.raises(ConfigurationError, match=r"RAG_EVAL_CACHE_MB is .* whole megabytes"):
        open_caches(tmp_path)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'["renamed", false, null, null]', b"1", b'["scored"]'])
def test_an_entry_of_other_code_is_computed_again_and_counted(data: bytes, tmp_path: Path) -> None:
    caches = open_caches(tmp_path)
    caches.files["scores"].put_many({b"a": data})
    caches.files["vectors"].put_many({b"a": data})
    assert caches.stores.scores.get_many([b"a"]) == [None]
    assert caches.stores.vectors.get_many([b"a"]) == [None]
    assert describe_events(caches.take_events()) == ["2 damaged cache entries were computed again"]


def test_a_damaged_entry_is_missing_and_said(tmp_path: Path) -> None:
    caches = open_caches(tmp_path)
    caches.stores.scores.put_many({b"a": SCORE, b"b": SCORE})
    with sqlite3.connect(tmp_path / "scores.sqlite") as connection:
        connection.execute("UPDATE entries SET value = replace(value, '0', '9') WHERE key = ?", (b"a",))
    assert caches.stores.scores.get_many([b"a", b"b"]) == [None, SCORE]
    events = caches.take_events()
    assert (events["scores"].hits, events["scores"].damaged) == (1, 1)
    assert describe_events(events) == ["1 damaged cache entries were computed again"]
    assert describe_events(caches.take_events()) == []


def test_a_lookup_imports_no_model_library(tmp_path: Path) -> None:
    open_stores(tmp_path).scores.put_many({b"a": SCORE})
    code = (
        "import sys; from pathlib import Path; from rag_eval_assets.scoring.cache import open_stores\n"
        "[found] = open_stores(Path(sys.argv[1])).scores.get_many([b'a'])\n"
        "assert found.values['precision'] == 0.1 + 0.2\n"
        "print([name for name in ('torch', 'transformers', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_caches_lie_in_the_home(tmp_path: Path) -> None:
    assert cache_folder(Home(tmp_path)) == tmp_path / "cache" / "scores"
