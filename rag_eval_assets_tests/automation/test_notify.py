"""Messages about failed runs: what they say, how they are delivered to a real server, what they never repeat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_eval_assets.automation import notify
from rag_eval_assets.automation.notify import FailedRun, Fault, bounded, open_notifier
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.suite.automation import Notify

VARIABLE = "RAG_EVAL_TEST_HOOK"


def failed(run_date: str | None = "2026-03-01", **changes: Any) -> FailedRun:
    fields = {
        "suite": "My Village",
        "run_date": run_date,
        "targets": ("base_line",),
        "faults": (Fault("my_village/base_line/bertscore", f"disk full while writing {run_date}"),),
        "more": 0,
        "run_id": "0123456789",
        "link": "http://127.0.0.1:3000/runs/0123456789",
    }
    return FailedRun(**{**fields, **changes})


def config(kind: str) -> Notify:
    return Notify.model_validate({"kind": kind, "url_env": VARIABLE})


@pytest.fixture(autouse=True)
def address(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{server.url}?key=secret")
    monkeypatch.setattr(notify, "PAUSE_SECONDS", 0)


def test_a_webhook_gets_everything_as_fields(server: Any) -> None:
    open_notifier(config("webhook"), print).send(failed())
    (request,) = server.requests
    assert request["headers"]["content-type"] == "application/json"
    assert request["json"] == {
        "event": "run_failed",
        "headline": "Evaluation of My Village for 2026-03-01 failed, target base_line",
        "suite": "My Village",
        "run_date": "2026-03-01",
        "targets": ["base_line"],
        "faults": [{"where": "my_village/base_line/bertscore", "what": "disk full while writing 2026-03-01"}],
        "more": 0,
        "run_id": "0123456789",
        "link": "http://127.0.0.1:3000/runs/0123456789",
    }


def test_slack_gets_one_text_in_which_nothing_is_markup(server: Any) -> None:
    open_notifier(config("slack"), print).send(failed(faults=(Fault("s/t/x", "<!channel> & <b>"),), more=2))
    assert server.requests[0]["json"] == {
        "text": "*Evaluation of My Village for 2026-03-01 failed, target base_line*\n"
        "• s/t/x: &lt;!channel&gt; &amp; &lt;b&gt;\n"
        "• and 2 more\n"
        "<http://127.0.0.1:3000/runs/0123456789|run 01234567>"
    }


def test_the_log_gets_lines() -> None:
    lines: list[str] = []
    open_notifier(Notify.model_validate({"kind": "log"}), lines.append).send(failed(targets=(), run_date=None))
    assert lines[0].splitlines() == [
        "Evaluation of My Village for no run date failed",
        "my_village/base_line/bertscore: disk full while writing None",
        "http://127.0.0.1:3000/runs/0123456789",
    ]


class TestDelivery:
    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_what_may_pass_is_tried_again(self, server: Any, status: int) -> None:
        server.statuses = [status, status]
        open_notifier(config("webhook"), print).send(failed())
        assert len(server.requests) == 3

    def test_it_ends_after_three_tries(self, server: Any) -> None:
        server.statuses = [500] * 4
        with pytest.raises(InfrastructureError, match=rf"the address in {VARIABLE} \(HTTP 500\)"):
            open_notifier(config("webhook"), print).send(failed())
        assert len(server.requests) == 3

    def test_a_refusal_is_not_tried_again(self, server: Any) -> None:
        server.statuses = [403] * 3
        with pytest.raises(InfrastructureError, match="HTTP 403") as caught:
            open_notifier(config("slack"), print).send(failed())
        assert len(server.requests) == 1
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("url", ["http://127.0.0.1:1/secret", "http://secret invalid/", "http://[secret"])
    def test_an_address_that_cannot_be_reached_is_not_repeated(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        monkeypatch.setenv(VARIABLE, url)
        with pytest.raises(InfrastructureError, match="could not be delivered") as caught:
            open_notifier(config("webhook"), print).send(failed())
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("url", [None, "", "hooks.example/secret", "file:///etc/passwd"])
    def test_a_variable_without_an_address_is_told_by_its_name(
        self, monkeypatch: pytest.MonkeyPatch, url: str | None
    ) -> None:
        monkeypatch.delenv(VARIABLE)
        if url is not None:
            monkeypatch.setenv(VARIABLE, url)
        with pytest.raises(ConfigurationError, match=f"{VARIABLE} holds no address") as caught:
            open_notifier(config("webhook"), print).send(failed())
        assert "secret" not in str(caught.value)


class TestDigest:
    def test_the_same_failure_on_another_run_date_is_the_same(self) -> None:
        assert failed("2026-03-01").digest == failed("2026-03-02", run_id="other", link="other").digest

    @pytest.mark.parametrize(
        "changes", [{"suite": "x"}, {"targets": ()}, {"faults": (Fault("my_village/base_line/bertscore", "x"),)}]
    )
    def test_another_suite_target_or_fault_is_another(self, changes: dict[str, Any]) -> None:
        assert failed(**changes).digest != failed().digest


def test_a_message_is_bounded() -> None:
    kept, more = bounded([Fault(f"step {n}", "line\n" * 1000) for n in range(25)])
    assert (len(kept), more) == (10, 15)
    assert {len(fault.what) for fault in kept} == {300}
    assert "\n" not in kept[0].what
    assert len(json.dumps(notify.slack_body(failed(faults=kept, more=more)))) < 5000
