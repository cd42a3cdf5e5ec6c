"""Single assets materialized again: a report never mixes two evaluations, and says which runs made its inputs."""

from __future__ import annotations

import dagster as dg
import pytest

from rag_eval_assets.orchestration import lineage
from rag_eval_assets.report.read import read_report
from rag_eval_assets.storage import store as store_module
from rag_eval_assets.storage.store import LocalStore, Provenance
from rag_eval_assets.suite.load import read_suite

DATE = "2026-03-01"


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    assert not event.step_failure_data.user_failure_data.metadata
    return event.step_failure_data.user_failure_data.description


def newest_report(place, suite):
    (row,) = place.table(suite, "eval_report").to_pylist()
    return read_report(place.home.reports / row["report"])


def test_a_report_over_two_versions_of_the_answers_is_refused_until_all_fit(place, village) -> None:
    suite = place.suite()
    assert place.materialize(suite).success
    before = place.files("reports")
    place.replies.update({row["question"]: row["answer"] for row in village.ROWS})
    assert place.materialize(suite, ["generated_answers"]).success
    message = failure_of(place.materialize(suite, ["eval_report"]))
    assert "was made from another version of 'generated_answers'" in message
    assert "Materialize 'retrieval_matches' again" in message
    assert place.files("reports") == before

    assert place.materialize(suite, ["retrieval_matches", "bertscore"]).success
    message = failure_of(place.materialize(suite, ["eval_report"]))
    assert "table 'sentence_cosine' of 2026-03-01 was made from another version of 'generated_answers'" in message

    assert place.materialize(suite, ["sentence_cosine"]).success
    assert place.materialize(suite, ["eval_report"]).success
    assert newest_report(place, suite).answer_similarity_summary.bertscore_f1.mean == 1.0


def test_examples_that_changed_after_the_answers_refuse_the_report(place, village) -> None:
    suite = place.suite()
    assert place.materialize(suite).success
    changed = place.suite(rows=[{**village.ROWS[0], "answer": "At eight."}, *village.ROWS[1:]])
    assert place.materialize(changed, ["eval_examples"]).success
    message = failure_of(place.materialize(changed, ["eval_report"]))
    assert "was made from another version of 'eval_examples'" in message


def test_answers_are_refused_where_the_corpus_is_not_the_one_of_the_manifest(place, village) -> None:
    assert place.materialize(place.suite()).success
    grown = place.suite(documents=[*village.DOCUMENTS, {"id": "inn", "text": "The inn serves soup at noon."}])
    message = failure_of(place.materialize(grown, ["generated_answers"]))
    assert message.startswith("the corpus has changed since its manifest of 2026-03-01 was made")
    assert place.materialize(grown, ["corpus", "generated_answers"]).success


def test_a_report_alone_is_a_new_evaluation_of_the_same_tables(place) -> None:
    suite = place.suite()
    whole = place.materialize(suite)
    first = newest_report(place, suite)
    kept = place.files("reports")
    alone = place.materialize(suite, ["eval_report", "score_history"])
    second = newest_report(place, suite)
    assert second.run_id != first.run_id
    assert second.content_sha256 == first.content_sha256
    assert (first.run.dagster_run_id, second.run.dagster_run_id) == (whole.run_id, alone.run_id)
    assert {made.dagster_run_id for made in second.run.inputs.values()} == {whole.run_id}
    after = place.files("reports")
    assert {path: after[path] for path in kept} == kept
    assert len(after) == 2 * len(kept)
    assert [line["run_id"] for line in place.history(suite)] == [first.run_id, second.run_id]


def test_a_scorer_alone_asks_the_target_nothing(place) -> None:
    suite = place.suite()
    whole = place.materialize(suite)
    answers = place.files("tables/tiny/pipeline/generated_answers")
    asked = list(place.calls)
    again = place.materialize(suite, ["bertscore", "eval_report"])
    assert again.success
    assert place.calls == asked
    assert place.files("tables/tiny/pipeline/generated_answers") == answers
    inputs = newest_report(place, suite).run.inputs
    assert inputs["bertscore"].dagster_run_id == again.run_id
    assert inputs["generated_answers"].dagster_run_id == whole.run_id


def test_a_report_of_a_date_that_nothing_was_made_for_says_what_to_do(place) -> None:
    message = failure_of(place.materialize(place.suite(), ["eval_report"]))
    assert "is not in the store" in message
    assert "Materialize 'corpus' for 2026-03-01 first" in message


def test_the_report_of_one_run_has_one_id_however_often_its_step_is_tried(place) -> None:
    """A step that is tried again finds its report on the disk; pointer and history must tell of that one."""
    from rag_eval_assets.evaluation.reporting import RunIdentity, make_report

    suite = place.suite()
    assert place.materialize(suite).success
    evaluation = place.evaluation(suite)
    _, first = make_report(evaluation, "pipeline", RunIdentity("dagster-run-1"))
    _, second = make_report(evaluation, "pipeline", RunIdentity("dagster-run-1"))
    assert first.json_path == second.json_path
    (row,) = place.table(suite, "eval_report").to_pylist()
    written = read_report(first.json_path)
    assert (row["run_id"], row["timestamp"]) == (written.run_id, written.timestamp)


@pytest.mark.parametrize(
    ("old", "new", "table"),
    [
        ("  k: 1\n", "  k: 3\n", "retrieval_matches"),
        ("    top_k: 3\n", "    top_k: 2\n", "generated_answers"),
        ("  type: bertscore\n", "  type: bertscore\n  layer: 5\n", "bertscore"),
    ],
)
def test_a_report_over_tables_of_other_settings_is_refused_and_the_tables_are_stale(
    place, old: str, new: str, table: str
) -> None:
    before = place.suite()
    assert place.materialize(before).success
    content = before.path.read_text()
    assert content.count(old) == 1
    before.path.write_text(content.replace(old, new))
    after = read_suite(before.path)
    message = failure_of(place.materialize(after, ["eval_report"]))
    assert f"table '{table}' of 2026-03-01 was made with other settings than the suite has now" in message
    versions = [
        {b.name: b.code_version for b in lineage.blueprints(suite) if b.target is not None} for suite in (before, after)
    ]
    changed = {name for name in versions[1] if versions[0][name] != versions[1][name]}
    assert changed == {table}, "Dagster shows an asset as stale whose code version has changed"


def test_a_table_that_is_replaced_while_the_report_reads_is_not_mixed_in(place, monkeypatch) -> None:
    """Between rows and footer of the matches, another process makes answers and matches anew."""
    suite = place.suite()
    assert place.materialize(suite).success
    evaluation = place.evaluation(suite)
    store = LocalStore(place.home.tables)
    key = evaluation.key("retrieval_matches", "pipeline")
    old, provenance = store.read_with_provenance(key)
    opened = store_module.read_with_metadata

    def replaced_while_open(file):
        table, footer = opened(file)
        if file.name == str(store.path(key)):
            newer = Provenance(provenance.code_version, {"generated_answers": "newer"}, facts=provenance.facts)
            store.write(key, old, newer)
        return table, footer

    monkeypatch.setattr(store_module, "read_with_metadata", replaced_while_open)
    table, read = store.read_with_provenance(key)
    assert read == provenance, "rows and footer are of one version"
    assert table.num_rows == old.num_rows
    message = failure_of(place.materialize(suite, ["eval_report"]))
    assert "table 'retrieval_matches' of 2026-03-01 was made from another version of 'generated_answers'" in message
