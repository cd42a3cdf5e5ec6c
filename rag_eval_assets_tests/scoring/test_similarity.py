"""The `similarity` scorer against a real server on loopback, live, recorded and replayed (contract, V9 to V13)."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.recording.channel import open_channel
from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.scoring.base import Pair, PairScore, no_advance
from rag_eval_assets.scoring.similarity import Similarity, SimilaritySettings
from rag_eval_assets.status import ScoreStatus
from rag_eval_assets_tests.servers.loopback import LoopbackServer, Reply, Request

VECTORS: dict[str, list[float]] = {"alpha": [1.0, 0.0], "beta": [0.6, 0.8]}
KEY = "sk-very-secret-0123456789"


def embeddings(vectors: Mapping[str, Any] = VECTORS, **further: Any) -> Callable[[Request], Reply]:
    """A service that knows the vectors of these texts."""

    def reply(request: Request) -> Reply:
        texts = request.json()["input"]
        data = [{"index": place, "embedding": vectors[text]} for place, text in enumerate(texts)]
        return Reply(body={"data": data, **further})

    return reply


@dataclass
class Bench:
    """A scorer over a server and a cassette; each call of `score` is a run of its own."""

    server: LoopbackServer
    folder: Path

    def score(self, *pairs: Pair, mode: Mode = Mode.AUTO, **settings: Any) -> list[PairScore]:
        return self.scored(*pairs, mode=mode, **settings)[0]

    def scored(
        self, *pairs: Pair, mode: Mode = Mode.AUTO, **settings: Any
    ) -> tuple[list[PairScore], dict[str, int | float | None]]:
        given = {"url": f"{self.server.url}/v1", "model": "embed", "max_retries": 0, **settings}
        with open_channel("embeddings", mode, self.folder, record_with="`rag-eval run s.yaml --cache auto`") as channel:
            scorer = Similarity(SimilaritySettings(**given), channel)
            return scorer.score_pairs(pairs, no_advance), scorer.calls()

    @property
    def sent(self) -> list[Any]:
        return [request.json() for request in self.server.requests]

    def bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())


@pytest.fixture
def bench(serve: Any, tmp_path: Path) -> Callable[..., Bench]:
    def make(*replies: Any) -> Bench:
        return Bench(serve(*(replies or (embeddings(),))), tmp_path / "s.cassette")

    return make


def pair(candidate: str | None, *references: str | None, case: str = "q-1") -> Pair:
    return Pair(candidate, references, case)


PAIR = pair("beta", "alpha")


class TestModes:
    """V13: requests by the server's count."""

    def test_auto_records_and_then_replays_also_without_server_and_key(self, bench: Any, monkeypatch: Any) -> None:
        made = bench()
        monkeypatch.setenv("EMBED_KEY", KEY)
        live = made.score(PAIR, api_key_env="EMBED_KEY")
        assert made.sent == [{"input": ["alpha"], "model": "embed"}, {"input": ["beta"], "model": "embed"}]
        assert made.server.requests[0].path == "/v1/embeddings"
        assert made.server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert made.score(PAIR, api_key_env="EMBED_KEY") == live
        monkeypatch.delenv("EMBED_KEY")
        before = made.bytes()
        made.server.stop()
        assert made.score(PAIR, mode=Mode.REPLAY, api_key_env="EMBED_KEY") == live
        assert made.score(PAIR, mode=Mode.AUTO, api_key_env="EMBED_KEY") == live
        assert len(made.sent) == 2
        assert made.bytes() == before
        assert KEY.encode() not in before

    def test_live_calls_again_and_replaces_and_off_calls_again_and_writes_nothing(self, bench: Any) -> None:
        vectors = dict(VECTORS)
        made = bench(embeddings(vectors))
        made.score(PAIR)
        vectors["beta"] = [0.0, 1.0]
        assert made.score(PAIR, mode=Mode.LIVE)[0].values == {"similarity": 0.0}
        assert len(made.sent) == 4
        assert made.score(PAIR, mode=Mode.REPLAY)[0].values == {"similarity": 0.0}
        before = made.bytes()
        made.score(PAIR, mode=Mode.OFF)
        assert len(made.sent) == 6
        assert made.bytes() == before

    def test_an_output_that_equals_the_reference_is_embedded_once_and_in_off_twice(self, bench: Any) -> None:
        made = bench()
        made.score(pair("alpha", "alpha"))
        assert len(made.sent) == 1
        made.score(pair("alpha", "alpha"), mode=Mode.OFF)
        assert len(made.sent) == 3

    def test_an_empty_cassette_fails_the_case_names_it_and_calls_nobody(self, bench: Any) -> None:
        made = bench()
        made.folder.mkdir()
        (score,) = made.score(PAIR, mode=Mode.REPLAY)
        assert (score.status, score.verdict.passed, score.verdict.value) == (ScoreStatus.SCORER_ERROR, False, 0.0)
        for part in ("reference of example 'q-1'", "recording_missing", "no recording", "--cache auto"):
            assert part in score.detail
        assert made.sent == []

    def test_another_threshold_needs_no_new_recording(self, bench: Any) -> None:
        made = bench()
        assert not made.score(PAIR)[0].verdict.passed
        assert made.score(PAIR, mode=Mode.REPLAY, threshold=0.6)[0].verdict.passed

    @pytest.mark.parametrize("encoding", ["float", "base64"])
    def test_a_replayed_score_equals_the_live_one_to_the_last_bit(self, bench: Any, encoding: str) -> None:
        numbers = np.random.default_rng(3).normal(size=(2, 1536)).astype(np.float32)
        sent = [base64.b64encode(row.tobytes()).decode() if encoding == "base64" else row.tolist() for row in numbers]
        made = bench(embeddings({"alpha": sent[0], "beta": sent[1]}))
        live = made.score(PAIR)[0].values["similarity"]
        replayed = made.score(PAIR, mode=Mode.REPLAY)[0].values["similarity"]
        off = made.score(PAIR, mode=Mode.OFF)[0].values["similarity"]
        assert live.hex() == replayed.hex() == off.hex()


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.AUTO, Mode.REPLAY])
class TestThresholds:
    """V9, directly, while recording, and from the recording."""

    @pytest.mark.parametrize(
        ("cosine", "threshold", "passes"),
        [
            (0.8, 0.8, True),
            (0.8 - 5e-10, 0.8, True),
            (0.8 - 2e-9, 0.8, False),
            (0.4213, 0.8, False),
            (0.6, 0.6, True),
            (-0.0787, -0.5, True),
            (1.0, 1.0, True),
            (-1.0, -1.0, True),
        ],
    )
    def test_at_the_edge(self, bench: Any, mode: Mode, cosine: float, threshold: float, passes: bool) -> None:
        made = bench(embeddings({"alpha": [1, 0], "beta": [cosine, math.sqrt(1 - cosine**2)]}))
        if mode is Mode.REPLAY:
            made.score(PAIR)
        (score,) = made.score(PAIR, mode=mode, threshold=threshold)
        assert score.values["similarity"] == pytest.approx(cosine, abs=1e-12)
        assert score.verdict.passed is passes
        assert (score.verdict.reason is None) is passes

    def test_the_reason_holds_cosine_and_threshold_with_enough_digits(self, bench: Any, mode: Mode) -> None:
        vectors = {
            "alpha": [1, 0],
            "low": [0.4213, math.sqrt(1 - 0.4213**2)],
            "near": [0.79999, math.sqrt(1 - 0.79999**2)],
        }
        made = bench(embeddings(vectors))
        pairs = (pair("low", "alpha"), pair("near", "alpha"))
        if mode is Mode.REPLAY:
            made.score(*pairs)
        low, near = made.score(*pairs, mode=mode)
        assert low.verdict.reason == "cosine 0.4213 is below the threshold 0.8"
        assert near.verdict.reason == "cosine 0.79999 is below the threshold 0.8"


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [([0, 0], [1, 1], "zero magnitude"), ([], [], "zero magnitude"), ([1], [1, 2], "1 and 2")],
)
def test_vectors_without_a_cosine_fail_with_a_finite_zero_and_the_run_goes_on(
    bench: Any, left: list[float], right: list[float], said: str
) -> None:
    made = bench(embeddings({"alpha": left, "beta": right, "gamma": [1, 0]}))
    bad, good = made.score(PAIR, pair("gamma", "gamma"))
    assert (bad.status, bad.values) == (ScoreStatus.INCOMPARABLE, None)
    assert (bad.verdict.passed, bad.verdict.value) == (False, 0.0)
    assert said in bad.verdict.reason
    assert good.verdict.passed


@pytest.mark.parametrize(
    ("candidate", "reference", "status", "said"),
    [
        ("beta", None, ScoreStatus.NO_REFERENCE, "expected"),
        ("beta", "", ScoreStatus.EMPTY_REFERENCE, "expected"),
        (" \n", "alpha", ScoreStatus.EMPTY_ANSWER, "the answer is empty"),
        ("half \ud800", "alpha", ScoreStatus.INVALID_TEXT, "surrogates"),
    ],
)
def test_texts_that_cannot_be_compared_fail_without_a_request(
    bench: Any, candidate: str, reference: str | None, status: ScoreStatus, said: str
) -> None:
    made = bench()
    (score,) = made.score(pair(candidate, reference))
    assert (score.status, score.verdict.passed, score.verdict.value) == (status, False, 0.0)
    assert said in score.verdict.reason
    assert made.sent == []
    assert not made.folder.exists()


def test_the_best_of_several_references_counts(bench: Any) -> None:
    made = bench(embeddings({**VECTORS, "I do not know.": [0.0, 1.0]}))
    (score,) = made.score(PAIR, references=("I do not know.",))
    assert score.values == {"similarity": pytest.approx(0.8)}
    (unanswerable,) = made.score(pair("beta", None), references=("I do not know.",))
    assert unanswerable.verdict.passed


def test_texts_are_sent_as_they_are(bench: Any) -> None:
    made = bench(embeddings({" Kept\n": [1, 0], "Café 🚀": [1, 0]}))
    made.score(pair(" Kept\n", "Café 🚀"))
    assert [content["input"] for content in made.sent] == [["Café 🚀"], [" Kept\n"]]


def test_the_query_of_a_url_stays_and_slashes_at_its_end_do_not_count(bench: Any) -> None:
    made = bench()
    made.score(PAIR, url=f"{made.server.url}/v1///?api-version=2026-01")
    assert made.server.requests[0].path == "/v1/embeddings?api-version=2026-01"


def test_dimensions_are_asked_for_and_belong_to_the_key(bench: Any) -> None:
    made = bench()
    made.score(PAIR)
    made.score(PAIR, dimensions=2)
    assert made.sent[2] == {"input": ["alpha"], "model": "embed", "dimensions": 2}


class TestBatches:
    """Several texts in one request."""

    PAIRS = (pair("b", "a"), pair("c", "a"), pair("d", "b"))
    KNOWN: Mapping[str, list[float]] = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1], "d": [0.8, 0.6]}

    def reply(self, request: Request, **further: Any) -> Reply:
        texts = request.json()["input"]
        data = [{"index": place, "embedding": self.KNOWN[text]} for place, text in enumerate(texts)]
        return Reply(body={"data": data[::-1], "usage": {"prompt_tokens": 7}, **further})

    def test_answers_are_ordered_by_index_and_recorded_per_text(self, bench: Any) -> None:
        made = bench(self.reply)
        scores, calls = made.scored(*self.PAIRS, batch_size=16, usd_per_million_tokens=2.0)
        assert [content["input"] for content in made.sent] == [["a", "b", "c", "d"]]
        assert [score.values["similarity"] for score in scores] == [pytest.approx(0.6), 0.0, pytest.approx(0.96)]
        assert calls == {
            "live": 4,
            "replayed": 0,
            "recorded": 4,
            "missing": 0,
            "requests": 1,
            "tokens": 7,
            "cost_usd": pytest.approx(14e-6),
        }
        assert made.score(*self.PAIRS, mode=Mode.REPLAY) == scores
        assert made.score(*self.PAIRS, batch_size=3) == scores  # batches are no part of the key
        assert len(made.sent) == 1

    def test_recorded_usage_counts_in_replay_too(self, bench: Any) -> None:
        made = bench(self.reply)
        made.scored(*self.PAIRS, batch_size=2)
        _, calls = made.scored(*self.PAIRS, mode=Mode.REPLAY)
        assert (calls["tokens"], calls["requests"], calls["live"]) == (14, 0, 0)

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ([{"index": 0, "embedding": [1, 0]}], "1 embeddings for 4 texts"),
            ([{"index": 1, "embedding": [1, 0]}] * 4, "data[].index"),
            ([{"index": place, "embedding": "?"} for place in range(4)], "data[0].embedding"),
        ],
    )
    def test_an_answer_that_does_not_fit_is_recorded_for_nobody(self, bench: Any, data: Any, said: str) -> None:
        made = bench(Reply(body={"data": data}))
        scores = made.score(*self.PAIRS, batch_size=16)
        assert all(said in score.detail for score in scores)
        assert not made.folder.exists()

    def test_a_refused_batch_is_sent_text_by_text(self, bench: Any) -> None:
        def reply(request: Request) -> Reply:
            refused = Reply(400, {"error": "too long"})
            return refused if "c" in request.json()["input"] else self.reply(request)

        made = bench(reply)
        scores = made.score(*self.PAIRS, batch_size=16)
        assert [score.status for score in scores] == ["scored", "scorer_error", "scored"]
        assert "output of example 'q-1': 400" in scores[1].detail


class TestFailures:
    """Each reads differently, and says which text of which example it is about."""

    @pytest.mark.parametrize(
        ("reply", "kind", "said"),
        [
            (Reply(401, {"error": f"bad key {KEY}"}), "401", "status 401"),
            (Reply(body=b"<!doctype html><p>Sign in", headers={"content-type": "text/html"}), "bad_response", "HTML"),
            (Reply(body={"data": [{"no_embedding": True}]}), "bad_response", "data[0].embedding"),
            (Reply(body={"data": [{"embedding": [1, None]}]}), "bad_response", "data[0].embedding"),
            (Reply(body=b'{"data":[{"embedding":[1,NaN]}]}'), "bad_response", "data[0].embedding"),
            (Reply(silent=True), "timeout", "0.2 s"),
            (Reply(hang_up=True), "transport", "closed the connection"),
        ],
        ids=["401", "html", "no_embedding", "null", "nan", "timeout", "hang_up"],
    )
    def test_a_failed_call(self, bench: Any, monkeypatch: Any, reply: Reply, kind: str, said: str) -> None:
        monkeypatch.setenv("EMBED_KEY", KEY)
        made = bench(reply)
        (score,) = made.score(PAIR, api_key_env="EMBED_KEY", timeout_seconds=0.2)
        assert score.status == ScoreStatus.SCORER_ERROR
        assert score.detail.startswith(f"scorer error: reference of example 'q-1': {kind}: ")
        assert said in score.detail
        assert KEY not in score.detail
        assert (score.verdict.passed, score.verdict.value, score.verdict.reason) == (False, 0.0, score.detail)

    def test_a_server_that_is_gone(self, bench: Any) -> None:
        made = bench()
        made.server.stop()
        (score,) = made.score(PAIR)
        assert "transport: " in score.detail
        assert "cannot be reached" in score.detail

    def test_a_corrupt_recording(self, bench: Any) -> None:
        made = bench()
        made.score(PAIR)
        for path in made.folder.glob("*.jsonl"):
            path.write_bytes(path.read_bytes().replace(b'"data":"', b'"data":"A'))
        (score,) = made.score(PAIR)
        assert "recording_damaged: the recording of key" in score.detail
        assert ".jsonl, line 1" in score.detail
        assert "--drop" in score.detail
        assert len(made.sent) == 2

    def test_a_dead_service_ends_the_stage_and_one_bad_text_does_not(self, bench: Any) -> None:
        made = bench(Reply(401, {}))
        with pytest.raises(InfrastructureError, match=r"the first \d+ calls for embeddings all failed \(401\)"):
            made.score(*[pair(f"text {number}", "alpha") for number in range(40)])
        assert len(made.sent) < 30

    def test_an_unset_key_stops_the_run_at_the_first_real_call(self, bench: Any, monkeypatch: Any) -> None:
        monkeypatch.delenv("EMBED_KEY", raising=False)
        made = bench()
        with pytest.raises(ConfigurationError, match="'EMBED_KEY' is unset or empty"):
            made.score(PAIR, api_key_env="EMBED_KEY")
        assert made.sent == []


def test_what_a_report_says_of_the_scorer(bench: Any) -> None:
    made = bench()
    with open_channel("embeddings", Mode.OFF, made.folder, record_with="") as channel:
        settings = SimilaritySettings("https://h/v1", "embed", "wide", "EMBED_KEY", dimensions=256)
        scorer = Similarity(settings, channel)
    assert scorer.describe() == {
        "id": "embed",
        "type": "similarity",
        "url": "https://h/v1",
        "threshold": 0.8,
        "dimensions": 256,
    }
    assert "EMBED_KEY" not in json.dumps(scorer.describe())
    assert (scorer.name, scorer.spec.name) == ("wide", "wide")
