"""`rag-eval run --from-report`: the same suite, target, date and limit again, and what differs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from rag_eval_assets.cli.app import app
from rag_eval_assets.evaluation import preflight
from rag_eval_assets.report.read import load_report


@pytest.fixture(autouse=True)
def without_models(place, no_aws) -> None:
    no_aws.setattr(preflight, "model_needs", lambda suite, **_: [])


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["run", *words])


def test_a_report_is_run_again_from_the_suite_that_stands_in_it(place, no_aws) -> None:
    suite = place.suite(targets=("one", "other"))
    (report, _) = place.execute(suite, limit=3).reports
    no_aws.chdir(suite.path.parent)
    suite.path.unlink()
    done = run("--from-report", str(report.json_path))
    assert done.exit_code == 0, done.output
    assert "content: equal to that of the report" in done.stdout
    assert "differs:" not in done.stdout
    reports = [load_report(path) for path in place.home.reports.rglob("*.json")]
    again = [found for found in reports if found["target"] == "one"]
    assert len({found["run_id"] for found in again}) == 2
    assert {found["run"]["run_date"] for found in reports} == {"2026-03-01"}
    assert {found["content_sha256"] for found in again} == {report.report.content_sha256}
    assert len(reports) == 3, "the other target was not asked again"
    assert {found["run"]["origin"]["limit"] for found in reports} == {3}


def test_a_column_that_its_suite_leaves_out_stays_out_and_others_are_looked_for(place, no_aws) -> None:
    suite = place.suite(datasets=[{"file": "rows.jsonl", "columns": {"id": None}}])
    (report,) = place.execute(suite, limit=2).reports
    no_aws.chdir(suite.path.parent)
    suite.path.unlink()
    done = run("--from-report", str(report.json_path))
    assert done.exit_code == 0, done.output
    assert "content: equal to that of the report" in done.stdout


def test_what_differs_is_said_field_by_field(place, no_aws) -> None:
    suite = place.suite()
    (report,) = place.execute(suite).reports
    before = json.loads(report.json_path.read_text())
    before["run"]["versions"]["torch"] = "1.0"
    before["models"]["bertscore"]["weights_sha256"] = "0" * 64
    report.json_path.write_text(json.dumps(before))
    place.replies["Who keeps the bees?"] = "Marta keeps the bees."
    no_aws.chdir(suite.path.parent)
    done = run("--from-report", str(report.json_path), "--json")
    result = json.loads(done.stdout)
    assert done.exit_code == 0
    differing = {line.split(": ")[0] for line in result["differences"]}
    assert {"run.versions.torch", "models.bertscore.weights_sha256", "examples"} <= differing
    assert any(name.startswith("answer_similarity_summary.bertscore_f1") for name in differing)
    assert not any(name.startswith(("dataset", "corpus", "run.origin", "run.host")) for name in differing)
    assert "examples: 4 in both, of these 1 with another answer and 1 with other scores" in done.stdout


def test_another_suite_may_be_given_and_its_settings_are_among_the_differences(place, no_aws) -> None:
    (report,) = place.execute(place.suite()).reports
    other = place.suite(retrieval={"k": 3})
    result = json.loads(run(str(other.path), "--from-report", str(report.json_path), "--json").stdout)
    assert "run.origin.settings.retrieval.k: 1 -> 3" in result["differences"]
    assert any(line.startswith("run.origin.suite_sha256: ") for line in result["differences"])


def test_a_report_that_left_paths_out_needs_its_suite(place, no_aws) -> None:
    suite = place.suite(models={"all-MiniLM-L6-v2": {"folder": "/opt/models/minilm"}})
    (report,) = place.execute(suite).reports
    assert "/opt/models" not in report.json_path.read_text()
    refused = json.loads(run("--from-report", str(report.json_path), "--json").stdout)
    assert refused["exit_code"] == 2
    assert "leaves out paths of the machine" in refused["error"]
    assert "rag-eval run suite.yaml --from-report" in refused["error"]


def test_an_older_report_that_does_not_tell_its_suite_is_refused(place, no_aws) -> None:
    (report,) = place.execute(place.suite()).reports
    content = json.loads(report.json_path.read_text())
    del content["run"]["origin"]
    report.json_path.write_text(json.dumps(content))
    refused = json.loads(run("--from-report", str(report.json_path), "--json").stdout)
    assert "does not tell which suite it was made with" in refused["error"]
    twice = json.loads(run("--from-report", str(report.json_path), "--target", "pipeline", "--json").stdout)
    assert "--target and --from-report are both given" in twice["error"]


def test_two_runs_of_equal_inputs_keep_equal_hashes_whatever_commit_they_were_made_at(place, no_aws) -> None:
    suite = place.suite()
    no_aws.setenv("RAG_EVAL_GIT_REVISION", "a" * 40)
    (first,) = place.execute(suite).reports
    no_aws.setenv("RAG_EVAL_GIT_REVISION", "b" * 40)
    (second,) = place.execute(suite).reports
    assert first.report.run.origin != second.report.run.origin
    assert first.report.content_sha256 == second.report.content_sha256
