"""Reports on the disk: where they lie, that none is ever replaced, and how reading fails."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import math

import pytest

import rag_eval_assets
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.report.build import build_report
from rag_eval_assets.report.identity import report_content_hash
from rag_eval_assets.report.read import load_report, read_report
from rag_eval_assets.report.write import report_bytes, report_key, write_report
from rag_eval_assets.storage.parquet import read_metadata, read_parquet

RUN_ID = "0f8b8b0e-6f0c-5d57-9d7e-5f2b8f7f6a11"


def test_the_key_holds_environment_date_and_run_id() -> None:
    assert report_key("qa", "2026-03-01", RUN_ID) == f"qa/eval-runs/2026/03/01/{RUN_ID}"


@pytest.mark.parametrize("env", ["", "QA", "-qa", "qa/../prod", "a" * 33, "qa\n", "ä"])
def test_an_environment_that_is_no_label_is_refused(env: str) -> None:
    with pytest.raises(ConfigurationError, match=r"report\.env"):
        report_key(env, "2026-03-01", RUN_ID)


@pytest.mark.parametrize("date", ["2026-3-1", "20260301", "2026-02-30", "../2026"])
@pytest.mark.parametrize("run_id", [RUN_ID, "../x", RUN_ID.upper()])
def test_no_other_path_can_be_made(date: str, run_id: str) -> None:
    with pytest.raises(ConfigurationError, match="no report can be named"):
        report_key("qa", date, run_id)


def test_the_files_lie_under_the_key_and_the_report_names_its_table(tmp_path, report, rows) -> None:
    written = write_report(tmp_path, report, rows)
    names = sorted(path.name for path in written.json_path.parent.iterdir())
    assert names == [f"{RUN_ID}.html", f"{RUN_ID}.json", f"{RUN_ID}.parquet"]
    assert written.json_path == tmp_path / f"{written.key}.json"
    content = written.json_path.read_bytes()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (written.sha256, written.bytes)
    table = json.loads(content)["examples_table"]
    assert table["key"] == f"{written.key}.parquet"
    assert table["sha256"] == hashlib.sha256(written.parquet_path.read_bytes()).hexdigest()
    assert read_parquet(written.parquet_path).equals(rows)


def test_the_table_says_in_its_footer_what_it_was_made_from(tmp_path, report, rows) -> None:
    written = write_report(tmp_path, report, rows)
    made_from = json.loads(read_metadata(written.parquet_path)["rag_eval"])
    assert (made_from["suite"], made_from["target"]) == ("demo", "embedded")
    assert made_from["dataset_fingerprint"] == report.dataset.fingerprint
    assert made_from["corpus_fingerprint"] == "c" * 64
    assert made_from["models"]["bertscore"]["id"] == "bert-base-uncased"
    assert "run_id" not in made_from, "equal inputs give equal bytes"


def test_what_is_read_is_what_was_written(tmp_path, report, rows) -> None:
    written = write_report(tmp_path, report, rows)
    assert read_report(written.json_path) == written.report
    assert read_report(str(written.json_path)) == written.report
    assert read_report(written.json_path.as_uri()) == written.report
    assert rag_eval_assets.read_report(written.json_path) == written.report
    assert report_content_hash(load_report(written.json_path)) == report.content_sha256


def test_writing_again_changes_nothing(tmp_path, make_inputs, report, rows) -> None:
    first = write_report(tmp_path, report, rows)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.json_path.parent.iterdir()}
    assert write_report(tmp_path, report, rows) == first
    # A step that is tried again has another time, but the same content.
    retried = build_report(make_inputs(timestamp=dt.datetime(2026, 3, 3, tzinfo=dt.UTC)))
    assert write_report(tmp_path, retried, rows) == first
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.json_path.parent.iterdir()} == before


def test_a_run_id_is_never_overwritten_with_other_content(tmp_path, make_inputs, report, rows) -> None:
    first = write_report(tmp_path, report, rows)
    before = (first.json_path.read_bytes(), first.html_path.read_bytes())
    with pytest.raises(InfrastructureError, match="exists with other content"):
        write_report(tmp_path, build_report(make_inputs(notes=["other"])), rows)
    with pytest.raises(InfrastructureError, match=r"parquet' exists with other content"):
        write_report(tmp_path, report, rows.slice(0, 5))
    assert (first.json_path.read_bytes(), first.html_path.read_bytes()) == before
    assert len(list(first.json_path.parent.iterdir())) == 3


def test_no_json_appears_when_the_table_cannot_be_written(tmp_path, report, rows) -> None:
    (tmp_path / "qa").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        write_report(tmp_path, report, rows)


def test_equal_rows_give_equal_table_bytes_in_whatever_chunks_they_came(tmp_path, make_inputs, report, rows) -> None:
    first = write_report(tmp_path / "a", report, rows)
    chunked = rows.slice(0, 2).to_batches() + rows.slice(2).to_batches()
    second = write_report(tmp_path / "b", report, type(rows).from_batches(chunked))
    assert first.parquet_path.read_bytes() == second.parquet_path.read_bytes()


def test_nan_is_never_written(report) -> None:
    summary = report.answer_similarity_summary
    broken = summary.model_copy(update={"bertscore_f1": summary.bertscore_f1.model_copy(update={"mean": math.nan})})
    with pytest.raises(ValueError, match="not JSON compliant"):
        report_bytes(report.model_copy(update={"answer_similarity_summary": broken}))


class TestReading:
    def write(self, tmp_path, report, **changes) -> str:
        path = tmp_path / "r.json"
        path.write_text(json.dumps({**report.to_json(), **changes}), encoding="utf-8")
        return str(path)

    def test_an_unknown_major_version_is_refused_by_name(self, tmp_path, report) -> None:
        with pytest.raises(ConfigurationError, match=r"schema_version '2\.0\.0'; this release reads major version 1"):
            read_report(self.write(tmp_path, report, schema_version="2.0.0"))
        with pytest.raises(ConfigurationError, match=r"schema_version 1;"):
            read_report(self.write(tmp_path, report, schema_version=1))

    def test_further_fields_of_a_later_minor_version_do_not_hinder(self, tmp_path, report) -> None:
        examples = report.to_json()["examples"]
        examples[0]["retrieval"]["later"] = 1
        path = self.write(tmp_path, report, schema_version="1.9.0", later={"x": [1]}, examples=examples)
        found = read_report(path)
        assert found.retrieval_summary == report.retrieval_summary
        assert [example.retrieval.rank for example in found.examples] == [1, 3, None, None, None, None]
        assert load_report(path)["later"] == {"x": [1]}

    def test_a_fault_is_named_by_its_place(self, tmp_path, report) -> None:
        with pytest.raises(ConfigurationError, match=r"no valid report: counts\.attempted"):
            read_report(self.write(tmp_path, report, counts={"answered": 1}))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "no valid JSON"),
            (b"{", "no valid JSON"),
            (b"\xff\xfe\xfa", "no valid JSON"),
            (b"[" * 100_000, "no valid JSON"),
            (b'{"schema_version": NaN}', "NaN is no JSON number"),
            (b"[1]", "no evaluation report"),
            (b'{"a": 1}', "no evaluation report"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path, content: bytes, message: str) -> None:
        path = tmp_path / "r.json"
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=message):
            read_report(path)

    def test_missing_files_are_said_to_be_missing(self, tmp_path) -> None:
        for name in (tmp_path / "no.json", (tmp_path / "no.json").as_uri()):
            with pytest.raises(ConfigurationError, match="does not exist"):
                read_report(name)
        with pytest.raises(ConfigurationError, match=r"is a folder\. Give a report's JSON file"):
            read_report(tmp_path)
        with pytest.raises(ConfigurationError, match="no URI that can be read"):
            read_report("ftp://host/r.json")


def test_reports_of_two_equal_runs_differ_only_in_run_facts(make_inputs) -> None:
    one = build_report(make_inputs())
    inputs = make_inputs()
    two = build_report(dataclasses.replace(inputs, run_id="7c0c86e7-7d0b-5f0e-8f60-0c1a4a3a6b52"))
    differing = {name for name, value in one.to_json().items() if two.to_json()[name] != value}
    assert differing == {"run_id"}
