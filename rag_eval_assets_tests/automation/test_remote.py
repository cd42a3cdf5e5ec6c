"""Versions of what lies elsewhere, asked of real servers on loopback: an address, and a bucket of moto."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_assets.automation.fingerprint import fingerprint
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets_tests.servers.bucket import REGION, S3Server, variables

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
    """A bucket's listing, with credentials that may do no more than list it."""

    @pytest.fixture
    def bucket(self, s3_server: S3Server, no_aws: pytest.MonkeyPatch) -> str:
        name = s3_server.bucket()
        self.work_as(s3_server, no_aws, {"Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{name}"})
        return name

    @staticmethod
    def work_as(server: S3Server, patch: pytest.MonkeyPatch, statement: dict[str, Any]) -> dict[str, str]:
        user = server.user({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})
        settings = {"AWS_ENDPOINT_URL": server.url, "AWS_DEFAULT_REGION": REGION, **variables(user)}
        for variable, value in settings.items():
            patch.setenv(variable, value)
        return user

    @pytest.fixture
    def put(self, s3_server: S3Server, bucket: str) -> Callable[[str, bytes], None]:
        client = s3_server.client()
        return lambda key, body: client.put_object(Bucket=bucket, Key=key, Body=body)

    @staticmethod
    def version(suite: MakeSuite, bucket: str, prefix: str = "docs/") -> str:
        return fingerprint(suite(corpus_sensor={"watch": {"s3": f"s3://{bucket}/{prefix}"}}))

    def test_objects_under_the_prefix_are_the_version(
        self, suite: MakeSuite, s3_server: S3Server, bucket: str, put: Callable[[str, bytes], None]
    ) -> None:
        put("docs/a.txt", b"the mill")
        put("other/b.txt", b"x")
        before = self.version(suite, bucket)
        put("other/b.txt", b"y")
        put("docs/a.txt", b"the mill")
        assert self.version(suite, bucket) == before, "the same bytes, put again"
        put("docs/a.txt", b"the MILL")
        changed = self.version(suite, bucket)
        assert changed != before
        put("docs/b.txt", b"")
        added = self.version(suite, bucket)
        assert added not in (changed, before)
        s3_server.client().delete_object(Bucket=bucket, Key="docs/b.txt")
        assert self.version(suite, bucket) == changed, "the added object deleted again"

    def test_the_last_object_deleted_is_an_error_and_not_an_empty_corpus(
        self, suite: MakeSuite, s3_server: S3Server, bucket: str, put: Callable[[str, bytes], None]
    ) -> None:
        put("docs/a.txt", b"the mill")
        self.version(suite, bucket)
        s3_server.client().delete_object(Bucket=bucket, Key="docs/a.txt")
        with pytest.raises(InfrastructureError, match=f"no object is under 's3://{bucket}/docs/'"):
            self.version(suite, bucket)

    def test_every_page_of_a_long_listing_counts(
        self, suite: MakeSuite, no_aws: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> None:
        no_aws.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")  # 1,000 at AWS
        server: S3Server = request.getfixturevalue("own_s3_server")
        user = self.work_as(server, no_aws, {"Action": "s3:ListBucket", "Resource": "*"})
        bucket, client = server.bucket(), server.client()
        for number in range(21):
            client.put_object(Bucket=bucket, Key=f"docs/{number:02}.txt", Body=b"")
        before = self.version(suite, bucket)
        client.put_object(Bucket=bucket, Key="docs/20.txt", Body=b"changed")
        assert self.version(suite, bucket) != before
        asked = [(line["method"], line["status"]) for line in server.requests(user)]
        assert asked == [("GET", 200)] * 6, "two looks of three pages, and no object is read"

    def test_a_refusal_names_the_action(
        self, suite: MakeSuite, s3_server: S3Server, bucket: str, no_aws: pytest.MonkeyPatch
    ) -> None:
        self.work_as(s3_server, no_aws, {"Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"})
        with pytest.raises(
            InfrastructureError, match=r"s3:ListBucket on s3://.*/docs/ failed: denied \(AccessDenied\)"
        ):
            self.version(suite, bucket)
