"""Going on with a run that failed: what was paid for is not paid for again, and nothing bad is kept."""

from __future__ import annotations

from types import ModuleType

import dagster as dg
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation import stages
from rag_eval_assets.orchestration.execute import Executed


def fail_scoring(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the scorers of these names fail as a bug would."""
    made = stages.make_scores

    def make(evaluation, target, name):
        if name in names:
            raise RuntimeError("out of memory")
        return made(evaluation, target, name)

    monkeypatch.setattr(stages, "make_scores", make)


@pytest.fixture
def failed(place, monkeypatch: pytest.MonkeyPatch) -> tuple[object, Executed]:
    """A suite whose run failed in both scorers, after every question had been answered."""
    suite = place.suite()
    with monkeypatch.context() as broken:
        fail_scoring(broken, "bertscore", "sentence_cosine")
        done = place.execute(suite)
    assert done.failures and done.reports == []
    assert len(place.calls) == 4
    return suite, done


def test_a_resumed_run_asks_nothing_that_was_answered(place, failed) -> None:
    suite, _ = failed
    done = place.execute(suite, resume=True)
    assert done.failures == []
    assert done.reports[0].report.counts.answered == 4
    assert len(place.calls) == 4, "no question was asked again"


def test_a_resumed_run_tells_what_it_keeps(place, failed) -> None:
    suite, _ = failed
    told: list[str] = []
    place.execute(suite, resume=True, tell=told.append)
    kept = "corpus, eval_examples, pipeline/generated_answers, pipeline/retrieval_matches"
    assert told == [f"resuming: 4 of 8 assets kept ({kept})"]


def test_a_run_without_resume_asks_anew(place, failed) -> None:
    suite, _ = failed
    place.execute(suite)
    assert len(place.calls) == 8


def test_a_resumed_run_that_fails_can_be_resumed(place, failed, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, _ = failed
    with monkeypatch.context() as broken:
        fail_scoring(broken, "sentence_cosine")
        assert place.execute(suite, resume=True).failures
    before = place.files("tables/tiny/pipeline/bertscore")
    assert place.execute(suite, resume=True).failures == []
    assert len(place.calls) == 4
    assert place.files("tables/tiny/pipeline/bertscore") == before


def test_the_resumed_report_names_the_runs_that_made_its_tables(place, failed) -> None:
    suite, first = failed
    done = place.execute(suite, resume=True)
    inputs = done.reports[0].report.run.inputs
    assert inputs["generated_answers"].dagster_run_id == first.run_id
    assert inputs["bertscore"].dagster_run_id == done.run_id


def test_a_table_that_failed_its_contract_is_made_again(place, village: ModuleType, monkeypatch) -> None:
    suite = place.suite()
    made = stages.load_examples

    def twice(suite, limit, **how):
        import dataclasses

        import pyarrow as pa

        examples = made(suite, limit, **how)
        return dataclasses.replace(examples, table=pa.concat_tables([examples.table, examples.table]))

    with monkeypatch.context() as broken:
        broken.setattr(stages, "load_examples", twice)
        assert place.execute(suite).failures
    assert place.calls == []
    done = place.execute(suite, resume=True)
    assert done.failures == []
    assert done.reports[0].report.counts.attempted == len(village.ROWS)


@pytest.mark.parametrize("case", ["never run", "succeeded", "another date", "changed suite"])
def test_where_nothing_was_left_unfinished_it_says_so_and_runs_nothing(
    case: str, place, village: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = place.suite()
    if case != "never run":
        with monkeypatch.context() as broken:
            if case != "succeeded":
                fail_scoring(broken, "bertscore")
            place.execute(suite)
    asked = len(place.calls)
    if case == "changed suite":
        suite = place.suite(retrieval={"k": 2})
    date = village.LATER if case == "another date" else village.DATE
    with pytest.raises(ConfigurationError, match="nothing to resume"):
        place.execute(suite, date, resume=True)
    assert len(place.calls) == asked


def test_a_run_cannot_be_resumed_over_other_data(place, failed) -> None:
    suite, _ = failed
    path = suite.path.with_name("rows.jsonl")
    path.write_text(path.read_text().replace("Who keeps the bees?", "Who keeps forty hives?"))
    with pytest.raises(ConfigurationError, match="its eval_examples of 2026-03-01 has changed since"):
        place.execute(suite, resume=True)
    assert len(place.calls) == 4


def test_a_run_cannot_be_resumed_over_another_corpus(place, failed) -> None:
    suite, _ = failed
    path = suite.path.with_name("documents.jsonl")
    path.write_text(path.read_text().replace("forty hives", "fifty hives"))
    with pytest.raises(ConfigurationError, match="its corpus of 2026-03-01 has changed since"):
        place.execute(suite, resume=True)


def test_a_limited_run_of_the_page_is_neither_resumed_nor_in_the_way(place, failed, monkeypatch) -> None:
    suite, _ = failed
    with dg.DagsterInstance.get() as instance:
        with monkeypatch.context() as broken:
            fail_scoring(broken, "bertscore")
            assert not place.materialize(suite, limit=2, instance=instance).success
        assert place.materialize(suite, limit=2, instance=instance).success
    asked = len(place.calls)
    done = place.execute(suite, resume=True)
    assert done.failures == []
    report = done.reports[0].report
    assert (report.dataset.sample, report.counts.attempted) == (None, 4)
    assert len(place.calls) == asked
