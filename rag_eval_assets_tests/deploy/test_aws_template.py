"""The CloudFormation template: clean to its linter, and what it would make put through the S3 and IAM APIs of moto.

moto's own CloudFormation passes lifecycle, public-access block and bucket policy over in silence, so the template is
resolved here and its parts are given to the APIs that it stands for. moto evaluates no conditions of policies.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cfnlint.api import lint_file
from cfnlint.decode import decode

from rag_eval_assets.evaluation.journals import FOLDER

TEMPLATE = Path(__file__).parents[2] / "deploy" / "aws" / "evaluation-bucket.yaml"
TEXT = b"{}"
JOURNAL = f"{FOLDER}/j.jsonl"


def resolved(bucket: str, environment: str = "qa") -> dict[str, Any]:
    """The template's resources with its parameters filled in."""
    template, faults = decode(str(TEMPLATE))
    assert faults == []
    defaults = {name: parameter.get("Default") for name, parameter in template["Parameters"].items()}
    values = {**defaults, "AWS::Partition": "aws", "BucketName": bucket, "Environment": environment, "Bucket": bucket}

    def resolve(part: Any) -> Any:
        if isinstance(part, dict):
            if set(part) == {"Ref"}:
                return values[part["Ref"]]
            if set(part) == {"Fn::Sub"}:
                return re.sub(r"\$\{([\w:]+)\}", lambda found: str(values[found[1]]), part["Fn::Sub"])
            return {str(key): resolve(value) for key, value in part.items()}
        return [resolve(item) for item in part] if isinstance(part, list) else part

    return {name: resolve(resource["Properties"]) for name, resource in template["Resources"].items()}


@pytest.fixture
def made(s3_server):
    """The resources for a bucket that exists."""
    bucket = s3_server.bucket()
    return bucket, resolved(bucket)


def test_the_linter_finds_nothing() -> None:
    assert [str(fault) for fault in lint_file(TEMPLATE)] == []


def test_the_bucket_is_private_encrypted_and_outlives_its_stack() -> None:
    template, _ = decode(str(TEMPLATE))
    properties = resolved("some-bucket")["Bucket"]
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    (encryption,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert template["Resources"]["Bucket"]["DeletionPolicy"] == "Retain"


def test_s3_takes_the_lifecycle_and_it_deletes_reports_alone_after_90_days(s3_server, made) -> None:
    bucket, resources = made
    rules = resources["Bucket"]["LifecycleConfiguration"]["Rules"]
    names = {"Id": "ID", "ExpirationInDays": "Expiration"}
    asked = [
        {names.get(key, key): {"Days": value} if key == "ExpirationInDays" else value for key, value in rule.items()}
        for rule in rules
    ]
    asked = [{"Prefix": "", **rule} for rule in asked]
    client = s3_server.client()
    client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": asked})
    kept = {rule["ID"]: rule for rule in client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]}
    reports = kept["delete-reports"]
    assert (reports["Expiration"], reports["Status"]) == ({"Days": 90}, "Enabled")
    assert reports["Prefix"] == "qa/eval-runs/", "a literal prefix, without a wildcard"
    expiring = {name: rule["Prefix"] for name, rule in kept.items() if "Expiration" in rule}
    journals = {"delete-abandoned-journals": f"qa/tables/{FOLDER}/"}
    assert expiring == {"delete-reports": "qa/eval-runs/", **journals}, "tables stay"


def test_s3_takes_access_block_and_encryption(s3_server, made) -> None:
    bucket, resources = made
    client, properties = s3_server.client(), resources["Bucket"]
    block = properties["PublicAccessBlockConfiguration"]
    client.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=block)
    assert client.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == block
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    client.put_bucket_encryption(
        Bucket=bucket,
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": rule["ServerSideEncryptionByDefault"]}]
        },
    )
    found = client.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert found[0]["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}


def test_without_tls_even_an_administrator_is_denied(s3_server, made) -> None:
    bucket, resources = made
    client = s3_server.client()
    client.put_object(Bucket=bucket, Key="qa/eval-runs/before.json", Body=TEXT)
    client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(resources["BucketPolicy"]["PolicyDocument"]))
    for request in (
        lambda: client.put_object(Bucket=bucket, Key="qa/eval-runs/after.json", Body=TEXT),
        lambda: client.get_object(Bucket=bucket, Key="qa/eval-runs/before.json"),
    ):
        with pytest.raises(ClientError, match=r"AccessDenied|Forbidden"):
            request()
    (statement,) = resources["BucketPolicy"]["PolicyDocument"]["Statement"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}, "TLS is let through"


def allowed(s3_server, bucket: str, policy: dict[str, Any]) -> set[str]:
    """What a user with that managed policy alone may do in a bucket that holds an object at each place."""
    places = (
        "qa/eval-runs/2026/x.json",
        "qa/tables/t.parquet",
        f"qa/tables/{JOURNAL}",
        "prod/eval-runs/2026/x.json",
        f"prod/tables/{JOURNAL}",
        "qa/other",
    )
    admin = s3_server.client()
    for place in places:
        admin.put_object(Bucket=bucket, Key=place, Body=TEXT)
    credentials, iam = s3_server.user(None), s3_server.client("iam")
    name = next(
        user["UserName"]
        for user in iam.list_users()["Users"]
        for key in iam.list_access_keys(UserName=user["UserName"])["AccessKeyMetadata"]
        if key["AccessKeyId"] == credentials["aws_access_key_id"]
    )
    made = iam.create_policy(PolicyName=f"p-{name}", PolicyDocument=json.dumps(policy["PolicyDocument"]))["Policy"]
    iam.attach_user_policy(UserName=name, PolicyArn=made["Arn"])
    client = s3_server.client("s3", credentials)
    requests = {
        **{f"put {place}": lambda p=place: client.put_object(Bucket=bucket, Key=p, Body=TEXT) for place in places},
        **{f"get {place}": lambda p=place: client.get_object(Bucket=bucket, Key=p) for place in places},
        **{f"head {place}": lambda p=place: client.head_object(Bucket=bucket, Key=p) for place in places},
        "list": lambda: client.list_objects_v2(Bucket=bucket),
        "head": lambda: client.head_bucket(Bucket=bucket),
        **{f"delete {place}": lambda p=place: client.delete_object(Bucket=bucket, Key=p) for place in places},
        "policy": lambda: client.get_bucket_policy(Bucket=bucket),
    }
    granted = set()
    for request, send in requests.items():
        try:
            send()
        except ClientError as error:
            assert error.response["Error"]["Code"] in ("AccessDenied", "403"), request
        else:
            granted.add(request)
    return granted


@pytest.mark.parametrize(
    ("policy", "may"),
    [
        ("ReportWriterPolicy", {"put qa/eval-runs/2026/x.json"}),
        ("ReportReaderPolicy", {"get qa/eval-runs/2026/x.json", "head qa/eval-runs/2026/x.json", "list"}),
        (
            "TableStorePolicy",
            {f"{verb} qa/tables/{name}" for verb in ("get", "head", "put") for name in ("t.parquet", JOURNAL)}
            | {f"delete qa/tables/{JOURNAL}", "list"},
        ),
    ],
)
def test_each_policy_allows_its_trade_and_nothing_else(s3_server, made, policy: str, may: set[str]) -> None:
    bucket, resources = made
    assert allowed(s3_server, bucket, resources[policy]) == may


@pytest.mark.parametrize(("policy", "prefix"), [("ReportReaderPolicy", "eval-runs"), ("TableStorePolicy", "tables")])
def test_listing_is_allowed_below_the_prefix_alone(policy: str, prefix: str) -> None:
    statements = resolved("some-bucket")[policy]["PolicyDocument"]["Statement"]
    (listing,) = [statement for statement in statements if statement["Action"] == "s3:ListBucket"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": f"qa/{prefix}/*"}}


def test_no_policy_names_a_wildcard_action() -> None:
    for name, properties in resolved("some-bucket").items():
        if name.endswith("Policy") and name != "BucketPolicy":
            for statement in properties["PolicyDocument"]["Statement"]:
                actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                assert all(re.fullmatch(r"s3:[A-Za-z]+", action) for action in actions)
                assert statement["Effect"] == "Allow"
