"""Several suites and targets in one home: none writes over another, and one that fails takes nobody along."""

from __future__ import annotations

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.report.read import read_report


def test_suites_and_targets_share_no_file(place) -> None:
    ours = place.suite("Ours", ("base", "next"))
    theirs = place.suite(
        "Theirs", ("base", "next"), rows=[{"question": "Who?", "answer": "Marta.", "context_id": "bees"}]
    )
    assert place.materialize(ours).success
    before = place.files()
    assert place.materialize(theirs).success
    after = place.files()
    assert {path: after.get(path) for path in before} == before
    new = {path for path in set(after) - set(before) if path.startswith("tables/")}
    assert all(path.startswith("tables/theirs/") for path in new)
    for target in ("base", "next"):
        assert len({path for path in new if path.startswith(f"tables/theirs/{target}/")}) == 7
    assert len([path for path in after if path.endswith(".json")]) == 4


def test_each_target_has_answers_and_a_report_of_its_own(place) -> None:
    suite = place.suite(targets=("base", "next"))
    assert place.materialize(suite).success
    for target in ("base", "next"):
        answers = place.table(suite, "generated_answers", target=target).column("answer").to_pylist()
        assert set(answers) == {f"{target} says: at seven in the morning"}
        (row,) = place.table(suite, "eval_report", target=target).to_pylist()
        report = read_report(place.home.reports / row["report"])
        assert (report.target, report.models.generator) == (target, target)


def test_a_target_evaluated_alone_leaves_the_other_as_it_was(place) -> None:
    suite = place.suite(targets=("base", "next"))
    assert place.materialize(suite).success
    before = place.files("tables/tiny/next")
    place.replies.update(dict.fromkeys([row["question"] for row in place_rows(place, suite)], "Something else."))
    assert place.materialize(suite, targets=["base"]).success
    assert place.files("tables/tiny/next") == before
    assert set(place.table(suite, "generated_answers", target="base").column("answer").to_pylist()) == {
        "Something else."
    }


def place_rows(place, suite) -> list[dict[str, str]]:
    return place.table(suite, "eval_examples").to_pylist()


def test_a_dead_target_costs_the_other_target_nothing(place, monkeypatch, village) -> None:
    from rag_eval_assets.evaluation import stages

    suite = place.suite(targets=("base", "dead"))
    refused = dict.fromkeys([row["question"] for row in village.ROWS], CallError("transport", "refused"))
    monkeypatch.setattr(
        stages,
        "open_target",
        lambda _, name, *rest: village.ScriptedTarget(name, refused if name == "dead" else {}, place.calls),
    )
    done = place.execute(suite, limit=4)
    assert [report.report.target for report in done.reports] == ["base"]
    (failure,) = done.failures
    assert isinstance(failure, InfrastructureError)
    assert "the first 4 calls all failed (transport): refused" in str(failure)
    dead = {path for path in place.files("tables") if "/dead/" in path}
    assert dead == set(), "nothing of a dead target is committed"


def test_every_failure_of_a_run_is_told(place, monkeypatch, village) -> None:
    """One target is down and the other's scorer has a bug: two sentences, not one."""
    from rag_eval_assets.evaluation import stages

    suite = place.suite(targets=("base", "dead"))
    make_scores = stages.make_scores

    def broken(evaluation, target, scorer):
        if scorer == "bertscore":
            raise ZeroDivisionError("a bug in the scorer")
        return make_scores(evaluation, target, scorer)

    refused = dict.fromkeys([row["question"] for row in village.ROWS], CallError("401", "no key"))
    monkeypatch.setattr(
        stages,
        "open_target",
        lambda _, name, *rest: village.ScriptedTarget(name, refused if name == "dead" else {}, place.calls),
    )
    monkeypatch.setattr(stages, "make_scores", broken)
    done = place.execute(suite, limit=4)
    assert done.reports == []
    target, scorer = (str(failure) for failure in done.failures)
    assert "(401): no key" in target
    assert "step 'tiny__base__bertscore' failed: ZeroDivisionError: a bug in the scorer" in scorer
