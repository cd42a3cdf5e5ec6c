"""A report's summaries come out of its examples again, and tampering shows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from rag_eval_assets.cli.app import app
from rag_eval_assets.errors import ConfigurationError, EvalError
from rag_eval_assets.report.build import build_report
from rag_eval_assets.report.examples import example_rows
from rag_eval_assets.report.recompute import recompute
from rag_eval_assets.report.write import write_report
from rag_eval_assets.storage.s3_errors import S3Error
from rag_eval_assets.tables import score_table


@pytest.fixture
def written(tmp_path, report, rows) -> Path:
    return write_report(tmp_path, report, rows).json_path


@pytest.fixture
def truncated(tmp_path, make_inputs, rows) -> Path:
    return write_report(tmp_path, build_report(make_inputs(max_examples=0)), rows).json_path


def edit(path: Path, *steps, value) -> None:
    values = json.loads(path.read_bytes())
    part = values
    for step in steps[:-1]:
        part = part[step]
    part[steps[-1]] = value
    path.write_text(json.dumps(values), encoding="utf-8")


def test_a_written_report_comes_out_again(written) -> None:
    assert recompute(written).differences == []
    assert recompute(str(written)).equal
    assert recompute(written.as_uri()).equal


def test_a_truncated_report_comes_out_of_its_table(truncated) -> None:
    assert json.loads(truncated.read_bytes())["examples"] == []
    assert recompute(truncated).differences == []


def test_it_needs_no_table_where_the_examples_are_listed(written) -> None:
    written.with_suffix(".parquet").unlink()
    assert recompute(written).equal


def test_an_edited_mean_is_found(written) -> None:
    mean = json.loads(written.read_bytes())["answer_similarity_summary"]["bertscore_f1"]["mean"]
    edited = math.nextafter(mean, 1)
    edit(written, "answer_similarity_summary", "bertscore_f1", "mean", value=edited)
    found = recompute(written)
    assert not found.equal
    assert any(
        line.startswith(
            f"answer_similarity_summary.bertscore_f1.mean: the report says {edited}, its examples give {mean}"
        )
        for line in found.differences
    )
    assert any(line.startswith("content_sha256: ") for line in found.differences)


def test_an_edited_score_moves_its_summary(written) -> None:
    edit(written, "examples", 1, "answer_similarity", "bertscore", "f1", value=0.51)
    fields = {line.split(":")[0] for line in recompute(written).differences}
    assert {"answer_similarity_summary.bertscore_f1.mean", "answer_similarity_summary.bertscore_f1.min"} <= fields
    assert {"examples_sha256", "content_sha256"} <= fields
    assert not any(field.startswith("answer_similarity_summary.sentence_cosine") for field in fields)


def test_an_edited_rank_moves_the_retrieval_summary(written) -> None:
    edit(written, "examples", 2, "retrieval", "rank", value=1)
    fields = {line.split(":")[0] for line in recompute(written).differences}
    assert {"retrieval_summary.top_k_match_rate", "retrieval_summary.mrr", "retrieval_summary.n_matched"} <= fields


def test_an_edited_answer_is_found_though_no_number_moves(written) -> None:
    edit(written, "examples", 0, "generated_answer", value="Better.")
    fields = [line.split(":")[0] for line in recompute(written).differences]
    assert fields == ["examples_sha256", "content_sha256"]


def test_a_dropped_example_is_found(written) -> None:
    values = json.loads(written.read_bytes())
    edit(written, "examples", value=values["examples"][:5])
    fields = {line.split(":")[0] for line in recompute(written).differences}
    assert {"dataset.n_examples", "dataset.fingerprint", "counts.attempted", "counts.errored"} <= fields


def test_run_facts_may_be_edited(written) -> None:
    edit(written, "run", "seconds", value={"bertscore": 3.0})
    assert recompute(written).equal


def test_another_table_beside_the_report_is_found(truncated, tmp_path, make_inputs, tables, make_rows) -> None:
    tables["eval_examples"] = tables["eval_examples"].slice(0, 5)
    other = write_report(tmp_path / "other", build_report(make_inputs()), make_rows(tables)).parquet_path
    truncated.with_suffix(".parquet").write_bytes(other.read_bytes())
    fields = {line.split(":")[0] for line in recompute(truncated).differences}
    assert {"examples_table.sha256", "dataset.n_examples", "examples_sha256"} <= fields


def test_a_truncated_report_without_its_table_says_what_is_missing(truncated) -> None:
    truncated.with_suffix(".parquet").unlink()
    with pytest.raises(ConfigurationError, match=r"lists no examples and its table '.*\.parquet' cannot be read"):
        recompute(truncated)


@pytest.mark.parametrize("max_examples", [0, 1_000])
def test_many_rows_with_intervals_and_a_further_scorer_come_out_to_the_last_digit(
    tmp_path, tables, make_inputs, max_examples: int
) -> None:
    random = np.random.default_rng(11)
    count = 300
    wide = {name: pa.concat_tables([table] * (count // 6)) for name, table in tables.items() if name != "call_log"}
    ids = pa.array([f"e{n}" for n in range(count)])
    wide = {n: t.set_column(0, t.schema.field(0), ids) for n, t in wide.items()}
    exact = score_table("exact", "Equal texts.", {"score": "1 where equal, else 0."})
    values = [
        {"example_id": f"e{n}", "trial": 0, "status": "scored", "truncated": False, "score": float(random.random())}
        for n in range(count)
    ]
    scores = {
        "bertscore": wide["bertscore"],
        "exact": pa.Table.from_pylist(values, schema=exact.schema),
        "sentence_cosine": wide["sentence_cosine"],
    }
    rows = example_rows(wide["eval_examples"], wide["generated_answers"], wide["retrieval_matches"], scores)
    report = build_report(make_inputs(rows=rows, max_examples=max_examples))
    summary = report.answer_similarity_summary.metrics()["exact_score"]
    assert summary.ci95[0] < summary.mean < summary.ci95[1]
    low, high = report.retrieval_summary.top_k_match_rate_ci95
    assert low < report.retrieval_summary.top_k_match_rate < high
    assert recompute(write_report(tmp_path, report, rows).json_path).differences == []


MAY_READ = ("s3:GetObject", "/qa/eval-runs/*")
FOLDER = "qa/eval-runs/2026/03/01"


@pytest.fixture
def uri(tmp_path, reports, make_inputs, report, rows) -> str:
    """URI of a report that lists no examples; `listed.json` beside it does."""
    client = reports.server.client()
    written = write_report(tmp_path / "listed", report, rows).json_path
    truncated = write_report(tmp_path / "short", build_report(make_inputs(max_examples=0)), rows).json_path
    for path, name in ((truncated, "short"), (written, "listed")):
        for ending in (".json", ".parquet"):
            key = f"{FOLDER}/{name}{ending}"
            client.put_object(Bucket=reports.bucket, Key=key, Body=path.with_suffix(ending).read_bytes())
    reports.allow(MAY_READ, ("s3:ListBucket", ""))
    return f"s3://{reports.bucket}/{FOLDER}/short.json"


def test_a_report_in_a_bucket_comes_out_again_with_its_table(uri, reports) -> None:
    assert recompute(uri).differences == []
    assert recompute(uri.replace("short", "listed")).equal
    reports.server.client().put_object(Bucket=reports.bucket, Key=f"{FOLDER}/listed.parquet", Body=b"PAR1")
    (difference,) = recompute(uri.replace("short", "listed")).differences
    assert difference.startswith("examples_table.sha256: the report says ")


def test_in_a_bucket_a_table_is_missed_only_where_it_is_needed(uri, reports) -> None:
    listed = uri.replace("short", "listed")
    reports.allow(("s3:GetObject", "/qa/eval-runs/*.json"), ("s3:ListBucket", ""))
    assert recompute(listed).equal
    with pytest.raises(S3Error, match=r"s3:GetObject on s3://.*/short\.parquet failed: denied"):
        recompute(uri)
    reports.allow(MAY_READ, ("s3:ListBucket", ""))
    reports.server.client().delete_object(Bucket=reports.bucket, Key=f"{FOLDER}/short.parquet")
    with pytest.raises(ConfigurationError, match=r"its table 'short\.parquet' cannot be read \('s3://.*does not exist"):
        recompute(uri)


@pytest.mark.parametrize(("command", "told"), [("show", "bertscore_f1"), ("recompute", "equal: every summary")])
def test_the_commands_take_a_uri(uri, command: str, told: str) -> None:
    done = CliRunner().invoke(app, ["report", command, uri])
    assert done.exit_code == 0
    assert told in done.stdout


@pytest.mark.parametrize(
    ("command", "made", "code", "message"),
    [
        ("show", lambda uri: uri.replace("short", "other"), 2, r"'s3://.*/other\.json' does not exist"),
        ("recompute", lambda uri: uri.replace("short", "other"), 2, r"'s3://.*/other\.json' does not exist"),
        (
            "recompute",
            lambda uri: uri.replace("/qa/", "/prod/"),
            3,
            r"s3:GetObject on s3://.* failed: denied .*\. Allow",
        ),
        ("recompute", lambda _: "s3://no-such-bucket/r.json", 3, r"s3:GetObject on s3://no-such-bucket/r\.json failed"),
        (
            "recompute",
            lambda _: "s3://Not_One/r.json",
            2,
            r"'Not_One' of 's3://Not_One/r\.json' is no name of a bucket",
        ),
        ("show", lambda _: "s3://bucket", 2, "'s3://bucket' names no object"),
    ],
    ids=["404, show", "404", "403", "another bucket", "no bucket's name", "no key"],
)
def test_why_a_uri_cannot_be_read_is_one_line(
    uri, command: str, made: Callable[[str], str], code: int, message: str
) -> None:
    error = CliRunner().invoke(app, ["report", command, made(uri)]).exception
    assert isinstance(error, EvalError)
    assert error.exit_code == code
    assert re.match(message, str(error))
    assert len(str(error).splitlines()) == 1
