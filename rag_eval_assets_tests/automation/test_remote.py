"""Versions of what lies elsewhere, asked of real servers on loopback: an address, and a bucket of moto."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag_eval_assets.automation.fingerprint import fingerprint
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.suite.load import LoadedSuite

MakeSuite = Callable[..., LoadedSuite]


class TestAddress:
    @staticmethod
    def version(suite: MakeSuite, server: Any, **watch: str) -> str:
        return fingerprint(suite(corpus_sensor={"watch": {"url": server.url, **watch}}))

    def test_the_whole_answer_is_the_version(self, suite: MakeSuite, server: Any) -> None:
        server.body = b"2026-03-01"
        before = self.version(suite, server)
        assert self.version(suite, server) == before
        server.body = b"2026-03-02"
        assert self.version(suite, server) != before

    def test_a_part_of_the_answer_may_be_the_version(self, suite: MakeSuite, server: Any) -> None:
        server.body = b'{"asked at": 1, "index": [{"a/b": "v1"}]}'
        before = self.version(suite, server, json_pointer="/index/0/a~1b")
        server.body = b'{"asked at": 2, "index": [{"a/b": "v1"}]}'
        assert self.version(suite, server, json_pointer="/index/0/a~1b") == before
        server.body = b'{"asked at": 2, "index": [{"a/b": "v2"}]}'
        assert self.version(suite, server, json_pointer="/index/0/a~1b") != before

    @pytest.mark.parametrize("body", [b"{}", b"[]", b"no json", b"", b'{"index": 3}'])
    def test_an_answer_without_that_part_is_an_error(self, suite: MakeSuite, server: Any, body: bytes) -> None:
        server.body = body
        with pytest.raises(InfrastructureError, match="has no '/index/0'"):
            self.version(suite, server, json_pointer="/index/0")

    @pytest.mark.parametrize("status", [401, 404, 500])
    def test_a_refusal_is_an_error(self, suite: MakeSuite, server: Any, status: int) -> None:
        server.statuses = [status]
        with pytest.raises(InfrastructureError, match=str(status)):
            self.version(suite, server)

    def test_a_page_as_long_as_a_corpus_is_no_version(self, suite: MakeSuite, server: Any) -> None:
        server.body = b"x" * ((1 << 20) + 1)
        with pytest.raises(InfrastructureError, match="longer than"):
            self.version(suite, server)

    def test_a_server_that_is_away_is_an_error_that_does_not_repeat_the_address(self, suite: MakeSuite) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/?key=secret"
        with pytest.raises(InfrastructureError, match="cannot be had") as caught:
            fingerprint(suite(corpus_sensor={"watch": {"url": url}}))
        assert "secret" not in str(caught.value)

    def test_a_token_is_sent_and_its_absence_told(
        self, suite: MakeSuite, server: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ConfigurationError, match="CORPUS_TOKEN is not set"):
            self.version(suite, server, token_env="CORPUS_TOKEN")
        assert server.requests == []
        monkeypatch.setenv("CORPUS_TOKEN", "t0ken")
        self.version(suite, server, token_env="CORPUS_TOKEN")
        assert server.requests[0]["headers"]["authorization"] == "Bearer t0ken"


class TestHub:
    @staticmethod
    def version(suite: MakeSuite) -> str:
        return fingerprint(suite(corpus_sensor={"watch": {"huggingface": "village/docs", "revision": "main"}}))

    @pytest.fixture(autouse=True)
    def hub(self, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "ENDPOINT", server.url.removesuffix("/version"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def test_the_commit_of_the_branch_is_the_version(self, suite: MakeSuite, server: Any) -> None:
        def commit(sha: str) -> None:
            server.body = json.dumps({"id": "village/docs", "sha": sha, "siblings": []}).encode()

        commit("a" * 40)
        before = self.version(suite)
        assert self.version(suite) == before
        assert "/api/datasets/village/docs/revision/main" in {request["path"] for request in server.requests}
        commit("b" * 40)
        assert self.version(suite) != before

    def test_a_data_set_that_is_not_there_is_an_error(self, suite: MakeSuite, server: Any) -> None:
        server.statuses = [404] * 9
        with pytest.raises(InfrastructureError, match="does not tell the revision of 'village/docs'"):
            self.version(suite)


class TestBucket:
    @pytest.fixture
    def bucket(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        import boto3

        servers = pytest.importorskip("moto.server", reason="needs moto to serve a bucket")
        server = servers.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        port = server.get_host_and_port()[1]
        for name, value in (
            ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="corpora")
        yield client
        server.stop()

    def test_objects_under_the_prefix_are_the_version(self, suite: MakeSuite, bucket: Any) -> None:
        def put(key: str, body: bytes) -> None:
            bucket.put_object(Bucket="corpora", Key=key, Body=body)

        made = suite(corpus_sensor={"watch": {"s3": "s3://corpora/docs/"}})
        with pytest.raises(InfrastructureError, match="no object is under 's3://corpora/docs/'"):
            fingerprint(made)
        put("docs/a.txt", b"the mill")
        put("other/b.txt", b"x")
        before = fingerprint(made)
        put("other/b.txt", b"y")
        put("docs/a.txt", b"the mill")
        assert fingerprint(made) == before, "the same bytes, put again"
        put("docs/a.txt", b"the MILL")
        changed = fingerprint(made)
        assert changed != before
        put("docs/b.txt", b"")
        assert fingerprint(made) != changed
        with pytest.raises(InfrastructureError, match="bucket 'nowhere' cannot be listed"):
            fingerprint(suite(corpus_sensor={"watch": {"s3": "s3://nowhere/"}}))
