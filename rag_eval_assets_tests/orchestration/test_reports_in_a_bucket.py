"""Whole runs whose reports go to a bucket: what lies there, what was asked of S3, and what happens where it is away."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import duckdb
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from typer.testing import CliRunner

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation import preflight
from rag_eval_assets.evaluation.pushing import push
from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.progress import SILENT
from rag_eval_assets.report import delivery
from rag_eval_assets.report.read import read_report
from rag_eval_assets.storage.s3_names import S3Bucket

FOLDER = "qa/eval-runs/2026/03/01"
ENDINGS = ("parquet", "html", "json")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE", 0.0)


def spooled(place) -> list[str]:
    return sorted(path.name for path in place.home.spool.iterdir()) if place.home.spool.exists() else []


def test_a_run_ends_with_its_report_in_the_bucket_and_an_empty_spool(place, reports) -> None:
    done = place.execute(place.suite())
    assert done.failures == []
    (written,) = done.reports
    key = f"{FOLDER}/{written.report.run_id}"
    assert written.place == f"s3://{reports.bucket}/{key}.json"
    objects = reports.objects()
    assert sorted(objects) == sorted(f"{key}.{ending}" for ending in ENDINGS)
    assert spooled(place) == []
    assert not place.home.reports.exists()
    assert json.loads(objects[f"{key}.json"])["run"]["env"] == "qa"
    # The writer put three objects, the JSON last, and asked for nothing else: no Get, no Head, no List.
    assert reports.requests() == [("PUT", f"{key}.{ending}", 200) for ending in ENDINGS]
    for request, ending in zip(reports.server.requests(reports.writer), ENDINGS, strict=True):
        sha256 = base64.b64encode(hashlib.sha256(objects[f"{key}.{ending}"]).digest()).decode()
        assert request["headers"]["HTTP_IF_NONE_MATCH"] == "*"
        assert request["headers"]["HTTP_X_AMZ_CHECKSUM_SHA256"] == sha256
    head = reports.server.client().head_object(Bucket=reports.bucket, Key=f"{key}.json", ChecksumMode="ENABLED")
    assert head["ContentType"] == "application/json"
    assert head["ChecksumSHA256"] == base64.b64encode(bytes.fromhex(written.sha256)).decode()
    (receipt,) = [json.loads(line) for line in place.home.receipts.read_text().splitlines()]
    assert receipt == {"run_id": written.report.run_id, "report": written.place, "sha256": written.sha256}

    # A reader, with credentials that allow more, reads what was written.
    reports.allow(("s3:GetObject", "/qa/eval-runs/*"), ("s3:ListBucket", ""))
    assert read_report(written.place) == written.report
    with duckdb.connect() as connection:
        connection.register_filesystem(ArrowFSWrapper(reports.file_system()))
        found = connection.sql(
            f"""
            SELECT report.run_id, report.answer_similarity_summary.bertscore_f1.mean, avg(bertscore_f1), count(*)
            FROM 's3://{reports.bucket}/qa/eval-runs/*/*/*/*.json' AS report,
                 's3://{reports.bucket}/qa/eval-runs/*/*/*/*.parquet'
            GROUP BY ALL
            """
        ).fetchall()
    mean = written.report.answer_similarity_summary.bertscore_f1.mean
    assert found == [(uuid.UUID(written.report.run_id), pytest.approx(mean), pytest.approx(mean), 4)]


def test_two_targets_give_two_reports_and_a_report_made_again_leaves_the_old_one(place, reports) -> None:
    suite = place.suite(targets=("one", "other"))
    assert place.materialize(suite).success
    first = reports.objects()
    assert len([key for key in first if key.endswith(".json")]) == 2
    assert place.materialize(suite, ["eval_report"], targets=["one"]).success
    second = reports.objects()
    assert len([key for key in second if key.endswith(".json")]) == 3
    assert {key: second[key] for key in first} == first
    assert spooled(place) == []


def test_a_prefix_that_is_not_allowed_fails_once_naming_key_and_action_and_keeps_the_report(place, reports) -> None:
    reports.allow(("s3:PutObject", "/prod/eval-runs/*"))
    suite = place.suite()
    done = place.execute(suite)
    (failure,) = {str(failure) for failure in done.failures}
    (written,) = done.reports
    key = f"{FOLDER}/{written.report.run_id}"
    assert f"s3:PutObject on s3://{reports.bucket}/{key}.parquet failed: denied (AccessDenied)" in failure
    assert "rag-eval report push" in failure
    assert done.failures[0].exit_code == 3
    assert reports.requests() == [("PUT", f"{key}.parquet", 403)], "asked once"
    # What was paid for is there: the report in the spool, tables and history in the store.
    assert written.place == str(written.json_path)
    assert read_report(written.json_path) == written.report
    assert spooled(place) == [written.report.run_id]
    (line,) = place.history(suite)
    assert line["run_id"] == written.report.run_id
    spool = {path.suffix: path.read_bytes() for path in written.json_path.parent.iterdir()}

    reports.allow(("s3:PutObject", "/qa/eval-runs/*"))
    assert pushed(place) == [f"delivered: s3://{reports.bucket}/{key}.json (sha256 {written.sha256})"]
    assert {Path(name).suffix: content for name, content in reports.objects().items()} == spool, "byte-identical"
    assert spooled(place) == []
    assert pushed(place, written.report.run_id) == [f"already there: s3://{reports.bucket}/{key}.json"]


def pushed(place, *run_ids: str) -> list[str]:
    return [str(line) for line in push(place.home, run_ids, SILENT)]


def test_a_server_stopped_in_the_middle_and_started_later_gets_the_same_bytes(place, own_reports, monkeypatch) -> None:
    """After the first of three objects the server is gone; what it lost in stopping is made anew."""
    suite, put = place.suite(), delivery.put_file

    def stops_after_the_first(client, bucket, key, path, **options) -> None:
        put(client, bucket, key, path, **options)
        own_reports.server.stop()

    monkeypatch.setattr(delivery, "put_file", stops_after_the_first)
    done = place.execute(suite)
    monkeypatch.setattr(delivery, "put_file", put)
    (written,) = done.reports
    assert "failed: unreachable (EndpointConnectionError)" in str(done.failures[0])
    spool = {path.suffix: path.read_bytes() for path in written.json_path.parent.iterdir()}
    note = json.loads((place.home.spool / written.report.run_id / "delivery.json").read_text())
    assert note["states"] == {"parquet": "delivered", "html": "waiting", "json": "waiting"}
    copy = {path: path.read_bytes() for path in place.home.spool.rglob("*") if path.is_file()}

    assert "unreachable" in "".join(pushed(place)), "still away"
    own_reports.server.start()
    own_reports.server.bucket(own_reports.bucket)
    own_reports.allow(("s3:PutObject", "/qa/eval-runs/*"))
    (line,) = pushed(place)
    assert line.startswith("delivered: s3://")
    assert {"." + key.rsplit(".", 1)[1]: content for key, content in own_reports.objects().items()} == {
        ending: content for ending, content in spool.items() if ending != ".parquet"
    }, "byte-identical; the first object went with the server that had it"
    # Pushed again: nothing waits; by name, or from a spool that was copied back, it is there already.
    requests = own_reports.requests()
    assert "already there: 1 report," in pushed(place)[0]
    assert pushed(place, written.report.run_id)[0].startswith("already there: s3://")
    for path, content in copy.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert pushed(place)[0].startswith("already there: s3://")
    assert spooled(place) == []
    assert own_reports.requests() == requests, "and S3 is not asked for that"


def test_the_command_says_what_became_of_each_report(place, reports) -> None:
    from rag_eval_assets.cli.app import app

    reports.allow(("s3:PutObject", "/prod/*"))
    (written,) = place.execute(place.suite()).reports
    refused = CliRunner().invoke(app, ["report", "push"])
    assert (refused.exit_code, refused.stdout) == (3, "")
    reports.allow(("s3:PutObject", "/qa/eval-runs/*"))
    delivered = CliRunner().invoke(app, ["report", "push"])
    assert delivered.exit_code == 0
    assert delivered.stdout.startswith(f"delivered: s3://{reports.bucket}/{FOLDER}/{written.report.run_id}.json (")
    again = CliRunner().invoke(app, ["report", "push"])
    assert (again.exit_code, again.stdout.startswith("nothing waits; already there: 1 report,")) == (0, True)
    with pytest.raises(ConfigurationError, match="neither waits in the spool nor was delivered from here"):
        CliRunner().invoke(app, ["report", "push", "no-such-run"], catch_exceptions=False)


def test_a_pointer_that_cannot_be_written_leaves_the_report_to_the_retry(place, reports, monkeypatch) -> None:
    """The step is tried again in the same run, with another time in its report: it must find the delivered one."""
    from rag_eval_assets.evaluation.reporting import RunIdentity, make_report

    suite = place.suite()
    assert place.materialize(suite).success
    evaluation = place.evaluation(suite)
    broken = place.evaluation(suite)
    monkeypatch.setattr(broken.store, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        make_report(broken, "pipeline", RunIdentity("dagster-run-1"))
    before = reports.objects()
    _, written = make_report(evaluation, "pipeline", RunIdentity("dagster-run-1"))
    assert reports.objects() == before
    assert written.problem is None
    assert hashlib.sha256(before[f"{written.key}.json"]).hexdigest() == written.sha256
    assert spooled(place) == []


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("RAG_EVAL_ENV", "../../x", r"RAG_EVAL_ENV: '../../x' is no label of an environment"),
        ("RAG_EVAL_REPORT_BUCKET", "Not_A_Bucket", r"RAG_EVAL_REPORT_BUCKET: 'Not_A_Bucket' is no name of a bucket"),
        ("RAG_EVAL_REPORT_BUCKET", "192.168.5.4", r"must not look like an IP address"),
        ("RAG_EVAL_S3_REGION", "", r"no region is known for bucket 'rag-eval-\w+' of the reports"),
        ("RAG_EVAL_S3_ENDPOINT", "127.0.0.1:9000", r"RAG_EVAL_S3_ENDPOINT: '127.0.0.1:9000' is no endpoint"),
        ("RAG_EVAL_REPORT_PROFILE", "nobody", r"AWS profile 'nobody' is in no AWS configuration file"),
        ("AWS_ACCESS_KEY_ID", None, r"no AWS credentials were found"),
        ("RAG_EVAL_TABLES", "s3://bucket", r"RAG_EVAL_TABLES: 's3://bucket' is no place on S3"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_before_anything_is_asked(
    place, reports, monkeypatch, variable: str, value: str | None, message: str
) -> None:
    if value is None:
        monkeypatch.delenv(variable)
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    else:
        monkeypatch.setenv(variable, value)
    suite = place.suite()
    try:
        failures = [str(failure) for failure in place.execute(suite).failures]
    except ConfigurationError as error:
        failures = [str(error)]
    assert any(re.search(message, failure) for failure in failures), failures
    assert place.calls == [], "no question was asked"
    assert reports.requests() == []
    assert spooled(place) == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [("RAG_EVAL_ENV", "../../x"), ("RAG_EVAL_REPORT_BUCKET", "Not_A_Bucket"), ("RAG_EVAL_S3_REGION", "")],
)
def test_the_command_refuses_such_a_setting_before_a_run_is_made(
    place, reports, monkeypatch, variable: str, value: str
) -> None:
    from rag_eval_assets.cli.app import app

    monkeypatch.setattr(preflight, "model_needs", lambda suite, **_: [])
    monkeypatch.setenv(variable, value)
    done = CliRunner().invoke(app, ["run", str(place.suite().path), "--json"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["exit_code"], told["reports"]) == (2, 2, [])
    assert not (place.home.dagster / "history").exists()
    assert not place.home.tables.exists()


def test_the_suite_names_a_bucket_too_and_the_environment_comes_first(place, reports, monkeypatch) -> None:
    from rag_eval_assets.evaluation.destination import destination

    suite = place.suite(
        report={"env": "dev", "s3": {"bucket": "from-the-suite", "region": "us-east-1", "addressing": "virtual"}}
    )
    assert destination(suite).bucket == S3Bucket(reports.bucket, "eu-central-1", reports.server.url, "path")
    assert destination(suite).env == "qa"
    for name in ("ENV", "REPORT_BUCKET", "S3_REGION", "S3_ENDPOINT", "S3_ADDRESSING"):
        monkeypatch.delenv(f"RAG_EVAL_{name}")
    assert destination(suite).bucket == S3Bucket("from-the-suite", "us-east-1", None, "virtual")
    assert destination(suite).env == "dev"


def test_dagster_shows_the_delivery_as_a_check_where_there_is_a_bucket(place, reports, monkeypatch) -> None:
    suite = place.suite()

    def checks() -> set[str]:
        graph = build_definitions([suite]).resolve_asset_graph()
        return {key.name for key in graph.asset_check_keys if key.asset_key.path[-1] == "eval_report"}

    assert checks() == {"table_contract", "drift", "gates", "delivered"}
    reports.allow(("s3:PutObject", "/prod/*"))
    result = place.materialize(suite)
    assert not result.success
    failed = [event.step_key for event in result.all_events if event.is_step_failure]
    assert failed == ["tiny__pipeline__eval_report_delivered"]
    assert len(place.history(suite)) == 1, "the history is written all the same"
    monkeypatch.delenv("RAG_EVAL_REPORT_BUCKET")
    assert checks() == {"table_contract", "drift", "gates"}


def test_a_code_location_without_a_bucket_loads_no_s3_client() -> None:
    code = "import sys, rag_eval_assets.definitions; print('boto3' in sys.modules)"
    root = Path(__file__).parents[2]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAG_EVAL_")}
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=kept, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
