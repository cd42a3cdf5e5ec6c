"""A whole evaluation through `execute`, twice, on the instance and store of one home; then the corpus changes."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import pytest

from rag_eval_assets.orchestration.execute import Executed
from rag_eval_assets.orchestration.instance import shared_instance
from rag_eval_assets.report.read import read_report
from rag_eval_assets.storage.store import data_version
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import TABLES

ROOT = Path(__file__).parents[2]
MARKUP = (
    "Is <script>alert(1)</script> | a [link](javascript:x) `or` *not*\nin the village by the river, behind the mill?"
)
DATE, LATER = "2026-03-01", "2026-03-02"
ONCE_PER_RUN = ("call_log", "eval_report", "score_history")
"""Tables that hold times or run ids, which no two runs share."""


@dataclass
class Twice:
    """One suite evaluated twice for one date."""

    suite: LoadedSuite
    first: Executed
    files: dict[str, bytes]
    second: Executed
    files_again: dict[str, bytes]
    records: dict[str, list[Any]]


@pytest.fixture(scope="module")
def twice(shared_place, village: ModuleType) -> Twice:
    rows = [*village.ROWS, {"id": "q5", "question": MARKUP, "answer": "No, | it is <b>not</b>.", "context_id": "mill"}]
    suite = shared_place.suite(rows=rows)
    first = shared_place.execute(suite)
    files = shared_place.files()
    second = shared_place.execute(suite)
    with shared_instance(shared_place.home) as instance:
        records = {
            key.path[-1]: instance.fetch_materializations(key, limit=10).records for key in instance.get_asset_keys()
        }
    return Twice(suite, first, files, second, shared_place.files(), records)


def written(files: dict[str, bytes], *names: str) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if any(f"/{name}/" in path for name in names)}


def test_it_writes_every_table_of_the_date_and_one_report(twice: Twice) -> None:
    assert twice.first.failures == []
    (report,) = twice.first.reports
    own = [name for name in (*TABLES, "eval_report") if name not in ("corpus", "eval_examples", "score_history")]
    parquet = [f"tables/tiny/{name}/run_date={DATE}/part-0.parquet" for name in ("corpus", "eval_examples")]
    parquet += [f"tables/tiny/pipeline/{name}/run_date={DATE}/part-0.parquet" for name in own]
    history = f"tables/tiny/pipeline/score_history/run_date={DATE}/{report.report.run_id}.parquet"
    reports = [
        f"reports/dev/eval-runs/2026/03/01/{report.report.run_id}.{kind}" for kind in ("html", "json", "parquet")
    ]
    assert sorted(twice.files) == sorted([*parquet, history, *reports])


def test_the_report_tells_what_was_evaluated(twice: Twice) -> None:
    report = read_report(twice.first.reports[0].json_path)
    assert (report.suite, report.target) == ("tiny", "pipeline")
    assert (report.dataset.name, report.dataset.split, report.dataset.n_examples) == ("village", "test", 5)
    assert report.dataset.sample is None
    assert report.counts.model_dump() == {"attempted": 5, "answered": 5, "empty": 0, "invalid_text": 0, "errored": 0}
    assert report.corpus is not None
    assert report.corpus.documents == 3
    assert report.models.generator == "pipeline"
    assert report.retrieval_summary.n_judged == 5
    assert report.retrieval_summary.top_k_match_rate == 2 / 5, "the target ranks the mill first, whatever is asked"
    assert report.answer_similarity_summary.bertscore_f1.n_scored == 5
    assert report.run.run_date == DATE
    assert report.run.dagster_run_id == twice.first.run_id
    assert report.run.calls.live == 5


def test_the_report_names_each_input_with_run_version_and_seconds(twice: Twice, shared_place) -> None:
    run = twice.second.reports[0].report.run
    names = {"corpus", "eval_examples", "generated_answers", "retrieval_matches", "bertscore", "sentence_cosine"}
    assert set(run.inputs) == set(run.seconds) == names
    for name, made in run.inputs.items():
        assert made.dagster_run_id == twice.second.run_id
        assert made.data_version == data_version(shared_place.table(twice.suite, name))
        assert made.materialized_at is not None
        assert made.code_version
    assert all(seconds > 0 for seconds in run.seconds.values())


def test_no_path_of_this_machine_is_in_the_report(twice: Twice, shared_place) -> None:
    text = twice.first.reports[0].json_path.read_text(encoding="utf-8")
    assert str(shared_place.folder) not in text
    assert "/tmp" not in text
    assert os.environ["RAG_EVAL_HOME"] not in text


def test_equal_inputs_give_equal_content_under_another_run_id(twice: Twice) -> None:
    first, second = twice.first.reports[0].report, twice.second.reports[0].report
    assert first.content_sha256 == second.content_sha256
    assert first.run_id != second.run_id


def test_a_second_run_writes_equal_bytes(twice: Twice) -> None:
    names = [name for name in TABLES if name not in ONCE_PER_RUN]
    before, after = written(twice.files, *names), written(twice.files_again, *names)
    assert len(before) == len(names)
    assert before == after
    tables = [report.parquet_path.read_bytes() for report in (twice.first.reports[0], twice.second.reports[0])]
    assert tables[0] == tables[1]


def test_a_second_run_leaves_the_first_report_and_its_line_in_the_history(twice: Twice, shared_place) -> None:
    kept = written(twice.files, "eval-runs", "score_history")
    assert len(kept) == 4
    assert {path: twice.files_again[path] for path in kept} == kept
    lines = shared_place.history(twice.suite)
    assert [line["run_id"] for line in lines] == [run.reports[0].report.run_id for run in (twice.first, twice.second)]


def test_the_pointer_leads_to_the_newest_report(twice: Twice, shared_place) -> None:
    (row,) = shared_place.table(twice.suite, "eval_report").to_pylist()
    assert row["run_id"] == twice.second.reports[0].report.run_id
    path = shared_place.home.reports / row["report"]
    assert read_report(path).run_id == row["run_id"]


def test_data_versions_are_content_hashes(twice: Twice, shared_place) -> None:
    for name, records in twice.records.items():
        versions = [record.asset_materialization.tags["dagster/data_version"] for record in records]
        assert len(versions) == 2, name
        assert records[0].partition_key == DATE
        if name not in ONCE_PER_RUN:
            assert versions[0] == versions[1] == data_version(shared_place.table(twice.suite, name))


def test_every_number_in_the_event_log_is_finite_and_means_are_plotted(twice: Twice) -> None:
    plotted: dict[str, set[str]] = {}
    for name, records in twice.records.items():
        metadata = records[0].asset_materialization.metadata
        numbers = {key: entry.value for key, entry in metadata.items() if isinstance(entry.value, int | float)}
        assert all(math.isfinite(value) for value in numbers.values()), name
        plotted[name] = set(numbers)
    assert {"top_k_match_rate", "judged", "seconds", "dagster/partition_row_count"} <= plotted["retrieval_matches"]
    assert {"f1_mean", "precision_mean", "recall_mean", "scored"} <= plotted["bertscore"]
    assert {"n_examples", "n_errors", "bertscore_f1_mean", "sentence_cosine_mean"} <= plotted["eval_report"]


def test_what_people_look_for_stands_first_and_in_a_length_that_can_be_read(twice: Twice) -> None:
    metadata = twice.records["eval_report"][0].asset_materialization.metadata
    names = [name for name in metadata if name not in ("n_examples", "n_errors")]
    assert names[:2] == ["summary", "top_k_match_rate"]
    assert names[-3:] == ["bytes", "seconds", "dagster/uri"]
    for name, entry in metadata.items():
        if isinstance(entry.value, float):
            assert len(str(entry.value).lstrip("-").replace(".", "").lstrip("0")) <= 7, name


def test_previews_are_short_tables_without_anybodys_markup(twice: Twice) -> None:
    previews = {
        name: records[0].asset_materialization.metadata["preview"].value
        for name, records in twice.records.items()
        if "preview" in records[0].asset_materialization.metadata
    }
    assert {"corpus", "eval_examples", "generated_answers", "retrieval_matches", "bertscore"} <= set(previews)
    for name, text in previews.items():
        header, _, *rows = text.splitlines()
        assert 1 <= len(rows) <= 20, name
        columns = len(cells(header))
        for row in rows:
            assert len(cells(row)) == columns, row
            assert all(len(unescaped(cell)) <= 80 for cell in cells(row)), row
            assert not re.search(r"(?<!\\)[<>`*\[\]]", row), row
    assert "\\<script\\>" in previews["eval_examples"]


def cells(row: str) -> list[str]:
    return re.split(r"(?<!\\)\|", row.strip())[1:-1]


def unescaped(cell: str) -> str:
    return re.sub(r"\\(.)", r"\1", cell.strip())


def test_every_check_was_evaluated_for_the_date_and_passed(twice: Twice, shared_place) -> None:
    with shared_instance(shared_place.home) as instance:
        events = instance.all_logs(twice.second.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    found = [event.get_dagster_event().asset_check_evaluation_data for event in events]
    names = ("table_contract", "error_rate", "corpus_coverage", "sound_scores", "completeness", "gates", "drift")
    assert {(check.check_name, check.partition) for check in found} == {(name, DATE) for name in names}
    assert len(found) == 15
    assert all(check.passed for check in found)


def test_the_journal_is_gone_once_the_answers_are_committed(twice: Twice, shared_place) -> None:
    assert not list(shared_place.home.journals.rglob("*.jsonl"))


def test_only_the_date_whose_corpus_has_changed_goes_stale(twice: Twice, shared_place, village: ModuleType) -> None:
    answers = ["corpus", "eval_examples", "generated_answers"]
    with shared_instance(shared_place.home) as instance:
        assert shared_place.materialize(twice.suite, answers, LATER, instance=instance).success
    documents = [*village.DOCUMENTS, {"id": "inn", "title": "Inn", "text": "The inn serves soup at noon."}]
    (twice.suite.path.parent / "documents.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    with shared_instance(shared_place.home) as instance:
        assert shared_place.materialize(twice.suite, ["corpus"], LATER, instance=instance).success
    stale = stale_statuses(shared_place.home.dagster, twice.suite)
    fresh = {"corpus", "eval_examples", *village.STEPS}
    assert {name for name, status in stale.items() if status[DATE] == "FRESH"} == fresh, "although it ran twice"
    assert {name for name, status in stale.items() if status[LATER] == "STALE"} == {"generated_answers"}


def stale_statuses(dagster_home: Path, suite: LoadedSuite) -> dict[str, dict[str, str]]:
    """Asset to date to what the web page shows: FRESH, STALE or MISSING; asked through Dagster's GraphQL."""
    dates = json.dumps([DATE, LATER])
    query = f"{{assetNodes{{assetKey{{path}} staleStatusByPartition(partitions: {dates})}}}}"
    answer = dagster_home.parent / "answer.json"
    command = [sys.executable, "-c", "from dagster_graphql.cli import main; main()"]
    result = subprocess.run(
        [*command, "-m", "rag_eval_assets.definitions", "-t", query, "-o", str(answer)],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DAGSTER_HOME": str(dagster_home),
            "RAG_EVAL_SUITES": str(suite.path),
            "DAGSTER_DISABLE_TELEMETRY": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    nodes = json.loads(answer.read_text())["data"]["assetNodes"]
    return {
        node["assetKey"]["path"][-1]: dict(zip((DATE, LATER), node["staleStatusByPartition"], strict=True))
        for node in nodes
    }
