"""A bucket that behaves as one of AWS in so far as moto does, for every test that asks for it.

One server per test process, started when a test first asks. IAM is enforced: each test works with credentials that
have the policies it gives them, and may look at every request that they were used for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

REGION = "eu-central-1"
SERVER = Path(__file__).with_name("s3_server.py")
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@dataclass
class S3Server:
    """moto's server as a process that can be stopped, and started anew with nothing in it on the same port."""

    log: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None
    admin: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, str(SERVER), str(self.log), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.strip().isdigit(), "the S3 server did not start"
        self.port = int(line)
        nobody = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}
        self.admin = self.user(EVERYTHING, iam=self.client("iam", nobody))

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def client(self, service: str = "s3", credentials: Mapping[str, str] | None = None) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.url, config=config, **(credentials or self.admin)
        )

    def user(self, policy: Mapping[str, Any] | None, *, iam: Any = None) -> dict[str, str]:
        """Credentials of a new user with that policy and no other."""
        iam, name = iam or self.client("iam"), f"user-{uuid.uuid4().hex[:12]}"
        iam.create_user(UserName=name)
        if policy is not None:
            iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}

    def bucket(self, name: str | None = None) -> str:
        """A new bucket's name."""
        name = name or f"rag-eval-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return name

    def requests(self, credentials: Mapping[str, str]) -> list[dict[str, Any]]:
        """Every request that was signed with those credentials, in order."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["access_key"] == credentials["aws_access_key_id"]]

    def objects(self, bucket: str) -> dict[str, bytes]:
        """Every object of a bucket."""
        client = self.client()
        keys = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
        return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def variables(credentials: Mapping[str, str]) -> dict[str, str]:
    """Credentials as environment variables."""
    return {name.upper(): value for name, value in credentials.items()}


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3") / "requests.jsonl")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_s3_server(tmp_path: Path) -> Iterator[S3Server]:
    """A server that its test may stop."""
    server = S3Server(tmp_path / "requests.jsonl")
    server.start()
    yield server
    server.stop()


@dataclass
class Reports:
    """A bucket for reports, and a writer with credentials that may put objects below one environment's prefix."""

    server: S3Server
    patch: pytest.MonkeyPatch
    bucket: str
    writer: dict[str, str] = field(default_factory=dict)

    def allow(self, *statements: tuple[str, str]) -> dict[str, str]:
        """Give the writer new credentials that allow these (action, resource below the bucket) and nothing else."""
        made = [
            {"Effect": "Allow", "Action": action, "Resource": f"arn:aws:s3:::{self.bucket}{below}"}
            for action, below in statements
        ]
        self.writer = self.server.user({"Version": "2012-10-17", "Statement": made})
        for name, value in variables(self.writer).items():
            self.patch.setenv(name, value)
        return self.writer

    def requests(self) -> list[tuple[str, str, int]]:
        """(method, path below the bucket, status) of each of the writer's requests."""
        found = self.server.requests(self.writer)
        return [(line["method"], line["path"].removeprefix(f"/{self.bucket}/"), line["status"]) for line in found]

    def objects(self) -> dict[str, bytes]:
        return self.server.objects(self.bucket)

    def file_system(self) -> Any:
        """pyarrow's file system with the writer's credentials."""
        from pyarrow.fs import S3FileSystem

        keys = {name.removeprefix("aws_").removesuffix("_id"): value for name, value in self.writer.items()}
        keys["secret_key"] = keys.pop("secret_access_key")
        return S3FileSystem(**keys, region=REGION, endpoint_override=f"127.0.0.1:{self.server.port}", scheme="http")


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nothing of this machine's AWS or `RAG_EVAL_*` settings, and no look-up of a role."""
    import os

    for name in list(os.environ):
        if name.startswith("AWS_") or (name.startswith("RAG_EVAL_") and name != "RAG_EVAL_HOME"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-aws-credentials"))
    return monkeypatch


def _reports(server: S3Server, patch: pytest.MonkeyPatch) -> Reports:
    made = Reports(server, patch, server.bucket())
    settings = {"REPORT_BUCKET": made.bucket, "ENV": "qa", "S3_ENDPOINT": server.url, "S3_REGION": REGION}
    for name, value in {**settings, "S3_ADDRESSING": "path"}.items():
        patch.setenv(f"RAG_EVAL_{name}", value)
    made.allow(("s3:PutObject", "/qa/eval-runs/*"))
    return made


@pytest.fixture
def reports(s3_server: S3Server, no_aws: pytest.MonkeyPatch) -> Reports:
    """The environment of a run that writes its reports to a bucket."""
    return _reports(s3_server, no_aws)


@pytest.fixture
def own_reports(own_s3_server: S3Server, no_aws: pytest.MonkeyPatch) -> Reports:
    """The same with a server that its test may stop."""
    return _reports(own_s3_server, no_aws)
