"""Nothing replaced: the embedded target and both scorers with all-MiniLM-L6-v2; then rows that break other tools."""

from __future__ import annotations

import json
import math
from types import ModuleType

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation import scorers, stages
from rag_eval_assets.orchestration.execute import Executed
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.report.read import read_report
from rag_eval_assets.report.recompute import recompute
from rag_eval_assets.report.schema import MetricSummary, Report
from rag_eval_assets.report.schema_example import Example
from rag_eval_assets.scoring.registry import build_scorer
from rag_eval_assets.storage.parquet import read_metadata
from rag_eval_assets.targets.registry import open_target
from rag_eval_assets.weights.resolve import resolve


@pytest.fixture(scope="module", autouse=True)
def real_scorers(shared_place):
    try:
        resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorers, "build_scorer", build_scorer)
        yield


@pytest.fixture(scope="module")
def embedded(shared_place) -> tuple[Executed, Executed]:
    """The embedded target's evaluation, made twice."""
    suite = shared_place.suite("embedded village")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "open_target", open_target)
        return shared_place.execute(suite), shared_place.execute(suite, limit=4)


def test_the_embedded_target_finds_and_quotes_the_documents(embedded: tuple[Executed, Executed]) -> None:
    done = embedded[0]
    assert done.failures == []
    report = read_report(done.reports[0].json_path)
    assert report.retrieval_summary.top_k_match_rate == 1.0
    assert report.counts.answered == 4
    assert report.models.generator == "extractive/all-MiniLM-L6-v2"
    answer = next(example for example in report.examples if example.id == "q1").generated_answer
    assert answer == "The old mill on the river opens at seven in the morning every day."


def test_its_scores_are_in_range_and_every_summary_follows_from_the_examples(
    embedded: tuple[Executed, Executed],
) -> None:
    written = embedded[0].reports[0]
    for name, metric in written.report.answer_similarity_summary.metrics().items():
        assert metric.n_scored == 4, name
        assert metric.mean is not None
        assert 0.2 < metric.mean < 1, name
    assert recompute(str(written.json_path)).equal


def test_the_report_names_what_scored_and_warns_of_the_shared_model(embedded: tuple[Executed, Executed]) -> None:
    report = embedded[0].reports[0].report
    assert report.models.bertscore is not None
    assert (report.models.bertscore.id, report.models.bertscore.layer) == ("all-MiniLM-L6-v2", 6)
    assert report.models.sentence_transformer is not None
    assert report.models.sentence_transformer.weights_sha256 is not None
    (note,) = report.notes
    assert "same model (all-MiniLM-L6-v2)" in note


def test_the_footers_of_tables_name_model_inputs_suite_and_releases(
    embedded: tuple[Executed, Executed], shared_place
) -> None:
    report = embedded[0].reports[0].report
    assert report.models.bertscore is not None
    (scores,) = shared_place.home.tables.glob("embedded_village/pipeline/bertscore/*/part-0.parquet")
    footer = {name: json.loads(value) for name, value in read_metadata(scores).items() if name.startswith("rag_eval")}
    assert footer["rag_eval"]["facts"]["scorer"]["weights_sha256"] == report.models.bertscore.weights_sha256
    assert report.models.bertscore.weights_sha256 is not None
    assert footer["rag_eval"]["inputs"].keys() == {"eval_examples", "generated_answers"}
    assert footer["rag_eval_made_by"]["suite_sha256"] == report.run.origin.suite_sha256
    assert footer["rag_eval_made_by"]["packages"]["torch"] == report.run.versions["torch"]
    (examples,) = shared_place.home.tables.glob("embedded_village/eval_examples/*/part-0.parquet")
    assert json.loads(read_metadata(examples)["rag_eval"])["facts"]["fingerprint"] == report.dataset.fingerprint


def test_real_scores_are_the_same_the_second_time(embedded: tuple[Executed, Executed]) -> None:
    first, second = (done.reports[0].report for done in embedded)
    assert [example.answer_similarity for example in first.examples] == [
        example.answer_similarity for example in second.examples
    ]
    assert first.examples == second.examples


LONG = "The mill grinds corn on every day of the week. " * 300  # 3,000 words
REPLIES = {
    "blank": "  \n\t",
    "none": None,
    "long": LONG,
    "surrogate": "The mill opens at \ud83d seven.",
    "down": CallError("500", "the server stumbled"),
    "unknown": "Nobody knows.",
    "plain": "It opens at seven in the morning.",
}
REFERENCE = "The mill opens at seven."


@pytest.fixture(scope="module")
def report(shared_place, village: ModuleType) -> Report:
    rows = [
        {"id": "null", "question": None, "answer": None, "context_id": "mill"},
        *[
            {
                "id": name,
                "question": f"{name}?",
                "answer": REFERENCE if name != "unknown" else None,
                "context_id": "mill",
            }
            for name in REPLIES
        ],
    ]
    shared_place.replies.update({f"{name}?": reply for name, reply in REPLIES.items()})
    done = shared_place.execute(shared_place.suite("odd rows", rows=rows))
    assert done.failures == []
    return read_report(done.reports[0].json_path)


def example(report: Report, name: str) -> Example:
    return next(example for example in report.examples if example.id == name)


def test_a_row_without_question_is_no_example_and_is_counted_with_its_row(report: Report) -> None:
    assert report.dataset.n_examples == len(REPLIES)
    assert report.dataset.excluded.count == 1
    (row,) = report.dataset.excluded.rows
    assert (row.source, row.row, row.reason) == ("rows.jsonl", 0, "no question")
    assert "null" not in [example.id for example in report.examples]


def test_every_question_is_counted_by_what_became_of_it(report: Report) -> None:
    assert report.counts.model_dump() == {"attempted": 7, "answered": 3, "empty": 2, "invalid_text": 1, "errored": 1}
    assert {example.id: example.status for example in report.examples} == {
        "blank": "empty",
        "none": "empty",
        "long": "ok",
        "surrogate": "invalid_text",
        "down": "error",
        "unknown": "no_reference",
        "plain": "ok",
    }


@pytest.mark.parametrize("name", ["bertscore_f1", "bertscore_precision", "bertscore_recall", "sentence_cosine"])
def test_means_are_over_scored_answers_and_the_others_are_counted_by_reason(report: Report, name: str) -> None:
    metric: MetricSummary = report.answer_similarity_summary.metrics()[name]
    assert metric.unscored_by_status == {
        "empty_answer": 1,
        "invalid_text": 1,
        "no_answer": 1,
        "no_reference": 1,
        "target_error": 1,
    }
    assert (metric.attempted, metric.n_scored, metric.errored, metric.no_reference) == (7, 2, 1, 1)
    assert metric.n_truncated == 1
    assert metric.mean is not None
    assert metric.mean_with_failures_as_zero is not None
    assert metric.mean_with_failures_as_zero == pytest.approx(metric.mean * 2 / 6, abs=1e-15), "all but the failed call"
    assert math.isfinite(metric.mean)


def test_an_answer_beyond_the_models_limit_is_scored_and_marked(report: Report) -> None:
    long = example(report, "long")
    assert long.generated_answer == LONG
    assert long.truncated == ["bertscore", "sentence_cosine"]
    assert long.answer_similarity.bertscore is not None
    assert long.answer_similarity.sentence_cosine is not None
    assert example(report, "plain").truncated == []


@pytest.mark.parametrize("name", ["blank", "none", "surrogate", "down", "unknown"])
def test_what_cannot_be_scored_is_null_and_no_zero(report: Report, name: str) -> None:
    similarity = example(report, name).answer_similarity
    assert (similarity.bertscore, similarity.sentence_cosine) == (None, None)


def test_texts_and_errors_are_kept_as_far_as_they_are_text(report: Report) -> None:
    assert example(report, "surrogate").generated_answer == "The mill opens at \ufffd seven."
    assert example(report, "blank").generated_answer == "  \n\t"
    assert example(report, "none").generated_answer is None
    assert example(report, "down").error == "500: the server stumbled"


def test_a_failed_call_is_not_judged_and_an_unscored_answer_is(report: Report) -> None:
    assert report.retrieval_summary.n_judged == 6
    assert report.retrieval_summary.matching.statuses == {"judged": 6, "target_error": 1}
    assert example(report, "blank").retrieval.rank == 1
