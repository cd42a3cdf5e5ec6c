"""The entry point of a function service: an event in, URIs and summaries out, everything below one folder."""

from __future__ import annotations

import pytest

from rag_eval_assets import serverless
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.evaluation import preflight
from rag_eval_assets.report import delivery
from rag_eval_assets.serverless import handler


@pytest.fixture(autouse=True)
def without_models(place, no_aws) -> None:
    no_aws.setattr(preflight, "model_needs", lambda suite, **_: [])
    no_aws.setattr(delivery, "FIRST_PAUSE", 0.0)


def test_an_event_gives_uris_and_summaries(place, reports) -> None:
    suite = place.suite(targets=("one", "other"))
    event = {"suite": str(suite.path), "run_date": "2026-03-01", "target": "one", "limit": 2}
    answer = handler(event, object())
    assert (answer["target"], answer["counts"]["attempted"]) == ("one", 2)
    assert answer["report"] == f"s3://{reports.bucket}/qa/eval-runs/2026/03/01/{answer['run_id']}.json"
    assert answer["report"].split("/", 3)[3] in reports.objects()
    assert answer["summary"]["answer_similarity_summary"]["bertscore_f1"]["n_scored"] == 2
    both = handler({"suite": str(suite.path), "run_date": "2026-03-01"})
    assert [entry["target"] for entry in both["reports"]] == ["one", "other"]


def test_without_a_home_everything_lies_in_the_only_folder_that_a_function_may_write_to(
    place, no_aws, tmp_path
) -> None:
    suite = place.suite()
    no_aws.delenv("RAG_EVAL_HOME")
    no_aws.delenv("DAGSTER_HOME")
    assert serverless.HOME.startswith("/tmp/")
    no_aws.setattr(serverless, "HOME", str(tmp_path / "function"))
    answer = handler({"suite": str(suite.path), "run_date": "2026-03-01"})
    no_aws.delenv("RAG_EVAL_HOME")
    assert answer["report"].startswith(str(tmp_path / "function"))
    assert {path.name for path in (tmp_path / "function").iterdir()} >= {"dagster", "tables", "reports"}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"suites": "embedded"}, "the event's 'suites' cannot be used: .* Its keys: suite, run_date, target, limit"),
        ({"limit": "5"}, "the event's 'limit' cannot be used"),
        ({"limit": 0}, "--limit is 0"),
        ({"run_date": "tomorrow"}, "Give a date as YYYY-MM-DD"),
        ({"target": "nobody"}, "has no target 'nobody'"),
        ({"suite": "no-such-suite"}, "is neither a file nor a packaged suite"),
    ],
)
def test_an_event_that_cannot_be_used_is_refused(place, event: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        handler(event)
    assert place.calls == []


def test_a_failure_fails_the_invocation(place, reports) -> None:
    reports.allow(("s3:PutObject", "/prod/*"))
    with pytest.raises(InfrastructureError, match=r"failed: denied \(AccessDenied\)"):
        handler({"suite": str(place.suite().path), "run_date": "2026-03-01"})
