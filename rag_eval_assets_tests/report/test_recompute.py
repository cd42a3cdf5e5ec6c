"""A report's summaries come out of its examples again, and tampering shows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.report.build import build_report
from rag_eval_assets.report.examples import example_rows
from rag_eval_assets.report.recompute import recompute
from rag_eval_assets.report.write import write_report
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
