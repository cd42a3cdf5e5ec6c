"""A whole evaluation whose tables lie in a bucket, beside its reports, each with credentials of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import dagster as dg
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.orchestration.compute import executor
from rag_eval_assets.orchestration.tables import open_store, tables_file_system
from rag_eval_assets.orchestration.tables_bucket import TablesBucket
from rag_eval_assets.storage.s3_names import S3Bucket
from rag_eval_assets.storage.s3_store import S3Store
from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey

STORE = (("s3:GetObject", "/qa/tables/*"), ("s3:PutObject", "/qa/tables/*"), ("s3:ListBucket", ""))


@pytest.fixture
def roles(reports, monkeypatch, tmp_path: Path) -> dict[str, dict[str, str]]:
    """A profile for the table store and one for the report writer, and no credentials besides."""
    users = {"tables": reports.allow(*STORE), "reports": reports.allow(("s3:PutObject", "/qa/eval-runs/*"))}
    sections = [[f"[{name}]", *[f"{key} = {value}" for key, value in user.items()]] for name, user in users.items()]
    (tmp_path / "profiles").write_text("\n".join(line for section in sections for line in section) + "\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "profiles"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("RAG_EVAL_TABLES", f"s3://{reports.bucket}/qa/tables")
    monkeypatch.setenv("RAG_EVAL_TABLES_PROFILE", "tables")
    monkeypatch.setenv("RAG_EVAL_REPORT_PROFILE", "reports")
    return users


def test_a_run_reads_and_writes_its_tables_there_and_leaves_none_here(place, reports, roles) -> None:
    suite = place.suite()
    done = place.execute(suite)
    assert done.failures == []
    objects = reports.objects()
    tables = sorted(key.removeprefix("qa/tables/") for key in objects if key.startswith("qa/tables/"))
    shared = [f"tiny/{name}/run_date=2026-03-01/part-0.parquet" for name in ("corpus", "eval_examples")]
    names = ("bertscore", "call_log", "eval_report", "generated_answers", "retrieval_matches", "sentence_cosine")
    own = [f"tiny/pipeline/{name}/run_date=2026-03-01/part-0.parquet" for name in names]
    history = f"tiny/pipeline/score_history/run_date=2026-03-01/{done.reports[0].report.run_id}.parquet"
    assert tables == sorted([*shared, *own, history])
    assert not place.home.tables.exists()
    # Each role asked for its own part alone: the writer for three puts, the store for nothing below the reports.
    writer, store = (reports.server.requests(roles[name]) for name in ("reports", "tables"))
    assert {(line["method"], line["status"]) for line in writer} == {("PUT", 200)}
    assert all("/eval-runs/" in line["path"] for line in writer)
    assert not any("/eval-runs/" in line["path"] for line in store)
    assert [line for line in store if line["status"] not in {200, 206}] == []

    footer = pq.read_schema(pa.BufferReader(objects[f"qa/tables/{own[0]}"])).metadata
    made_by = json.loads(footer[b"rag_eval_made_by"])
    assert (made_by["suite"], made_by["suite_sha256"]) == ("tiny", suite.sha256)
    assert made_by["packages"]["pyarrow"] == pa.__version__

    with duckdb.connect() as connection:
        connection.register_filesystem(ArrowFSWrapper(tables_file_system()))
        table = f"s3://{reports.bucket}/qa/tables/tiny/pipeline"
        rows = connection.sql(
            f"""
            SELECT run_date::varchar, example_id, f1 IS NOT NULL, rank
            FROM '{table}/bertscore/*/*.parquet'
            JOIN '{table}/retrieval_matches/*/*.parquet' USING (run_date, example_id, trial)
            ORDER BY example_id
            """
        ).fetchall()
    assert [row[:3] for row in rows] == [("2026-03-01", f"q{number}", True) for number in (1, 2, 3, 4)]


def test_drift_is_measured_against_a_date_in_the_bucket_and_equal_runs_give_equal_tables(place, reports, roles) -> None:
    suite = place.suite()
    assert place.materialize(suite).success
    first = {key: content for key, content in reports.objects().items() if "/tables/" in key}
    assert place.materialize(suite).success
    second = reports.objects()
    once_per_run = ("/call_log/", "/eval_report/", "/score_history/")
    assert {key for key in first if first[key] != second[key]} == {
        key for key in first if "/call_log/" in key or "/eval_report/" in key
    }
    assert all(any(part in key for part in once_per_run) for key in second.keys() - first.keys() if "/tables/" in key)
    later = place.materialize(suite, date="2026-03-02")
    (drift,) = [check for check in later.get_asset_check_evaluations() if check.check_name == "drift"]
    assert "against 2026-03-01" in (drift.description or "")


def test_pyarrow_reads_where_boto3_writes_also_where_only_aws_variables_tell(
    reports, roles, place, monkeypatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", reports.server.url)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    for name in ("S3_ENDPOINT", "S3_REGION", "S3_ADDRESSING"):
        monkeypatch.delenv(f"RAG_EVAL_{name}")
    store, key = open_store(place.home, place.suite()), TableKey("tiny", "scores", "2026-03-01")
    store.write(key, pa.table({"row": [1]}), Provenance("1"))
    assert store.read(key).to_pydict() == {"row": [1]}


def test_the_store_is_the_bucket_where_the_variable_is_set(reports, roles, place, monkeypatch) -> None:
    suite = place.suite()
    assert isinstance(open_store(place.home, suite), S3Store)
    monkeypatch.delenv("RAG_EVAL_TABLES")
    assert isinstance(open_store(place.home, suite), LocalStore)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("RAG_EVAL_S3_REGION", "", "no region is known for bucket 'rag-eval-.*' of RAG_EVAL_TABLES"),
        ("RAG_EVAL_TABLES", "s3://b/x", "RAG_EVAL_TABLES: 's3://b/x' is no name of a bucket"),
        ("RAG_EVAL_TABLES", "/tables", "RAG_EVAL_TABLES: '/tables' is no place on S3"),
        ("RAG_EVAL_TABLES", "s3://bucket/a/../b", "is no place on S3"),
        ("RAG_EVAL_S3_ADDRESSING", "host", "RAG_EVAL_S3_ADDRESSING is 'host'"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_before_a_run_is_made(
    place, roles, monkeypatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=message):
        place.execute(place.suite())
    assert not (Home(place.home.root).dagster / "history").exists()


@pytest.mark.parametrize(("addressing", "url"), [("path", "/rag/key"), ("virtual", "//rag.")])
def test_the_resource_of_dagster_aws_knows_the_addressing_style(no_aws, addressing: str, url: str) -> None:
    no_aws.setenv("AWS_ACCESS_KEY_ID", "x")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "y")
    resource = TablesBucket.of(S3Bucket("rag", "eu-central-1", "https://s3.example", addressing))
    signed = resource.get_client().generate_presigned_url("get_object", Params={"Bucket": "rag", "Key": "key"})
    assert url in signed
    assert resource.get_client().meta.config.retries["total_max_attempts"] == 5


def test_with_tables_in_a_bucket_steps_may_run_in_pods(reports, roles, place, monkeypatch) -> None:
    monkeypatch.setenv("RAG_EVAL_EXECUTOR", "k8s")
    assert executor().name == "k8s"
    definitions = build_definitions([place.suite()])
    dg.Definitions.validate_loadable(definitions)
    monkeypatch.delenv("RAG_EVAL_TABLES")
    with pytest.raises(ConfigurationError, match=re.escape("Put the tables into a bucket with RAG_EVAL_TABLES")):
        executor()
