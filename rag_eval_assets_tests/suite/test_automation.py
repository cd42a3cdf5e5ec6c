"""Schedule, sensor, notifier, freshness and checks of a suite: what is refused, and that they change no measurement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.cron import cron_fault
from rag_eval_assets.suite.load import read_suite

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("schedule", "{}", "schedule.cron: is required"),
        ("schedule", "{cron: '0 6 * *'}", "has five fields (minute hour day month weekday), this one has 4"),
        ("schedule", "{cron: '0 24 * * *'}", "'24' is no hour (0-23, "),
        ("schedule", "{cron: '0 6 * * *', timezone: Europe/Berlin}", "unknown key 'timezone'"),
        ("corpus_sensor", "{watch: {}}", "name one of 'file', 'folder', 'huggingface', 'url', 's3'"),
        ("corpus_sensor", "{watch: {file: a, url: 'http://b'}}", "name one of"),
        ("corpus_sensor", "{watch: {file: a, json_pointer: /x}}", "'json_pointer' goes with 'url'"),
        ("corpus_sensor", "{watch: {url: 'ftp://b'}}", "corpus_sensor.watch.url: "),
        ("corpus_sensor", "{watch: {url: 'http://b', token_env: 'a b'}}", "corpus_sensor.watch.token_env: "),
        ("corpus_sensor", "{watch: {s3: bucket/prefix}}", "corpus_sensor.watch.s3: "),
        ("corpus_sensor", "{settle: 5}", "unknown key 'settle' (did you mean 'settle_seconds'?)"),
        ("notify", "{kind: mail}", "notify.kind: unknown value 'mail' (known: log, webhook, slack)"),
        ("notify", "{kind: slack}", "'url_env' goes with the kinds webhook and slack, and is needed there"),
        ("notify", "{kind: log, url_env: X}", "'url_env' goes with the kinds webhook and slack"),
        ("notify", "{kind: webhook, url_env: 'https://hooks.example/x'}", "notify.url_env: "),
        ("freshness", "{fail_after_hours: 5, warn_after_hours: 5}", "must be less than 'fail_after_hours'"),
        ("checks", "{error_rate: {at_most: 2}}", "checks.error_rate.at_most: "),
        ("checks", "{table_contract: {blocking: false}}", "unknown key 'table_contract'"),
    ],
)
def test_a_fault_is_named_with_its_place(write_suite: Write, key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_suite(write_suite(**{key: value}))
    assert message in str(caught.value)


def test_what_triggers_a_run_does_not_change_what_the_suite_is(write_suite: Write) -> None:
    before = read_suite(write_suite())
    after = read_suite(
        write_suite(
            schedule="{cron: '0 6 * * *', running: true}",
            corpus_sensor="{watch: {folder: docs}}",
            notify="{kind: log}",
            freshness="{fail_after_hours: 30}",
            checks="{drift: {at_most: 0.1, blocking: true}}",
        )
    )
    assert after.suite != before.suite
    assert after.sha256 == before.sha256


def test_nothing_runs_by_itself_unless_the_suite_says_so(write_suite: Write) -> None:
    suite = read_suite(
        write_suite(schedule="{cron: '0 6 * * *'}", corpus_sensor="{watch: {folder: d}}", notify="{kind: log}")
    ).suite
    assert [part.running for part in (suite.schedule, suite.corpus_sensor, suite.notify) if part] == [False] * 3


class TestCron:
    @pytest.mark.parametrize(
        "cron", ["0 6 * * *", "*/15 0-5,12 1,15 jan-jun/2 MON-fri", "59 23 31 12 7", "5/10 * * * sun", " 0  6 * * 1 "]
    )
    def test_these_are_expressions(self, cron: str) -> None:
        assert cron_fault(cron) is None

    @pytest.mark.parametrize(
        "cron",
        [
            "",
            "@daily",
            "60 * * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "* * * * */00",
            "4-30/31 * * * *",
            "\u0663 * * * *",
            "5-1 * * * *",
            "1,,2 * * * *",
            "a * * * *",
            "1- * * * *",
            "-1 * * * *",
            "* * * * mon-",
            "0 6 * * * *",
            "** * * * *",
            "*/99 * * * *",
            "1.5 * * * *",
        ],
    )
    def test_these_are_not(self, cron: str) -> None:
        assert cron_fault(cron) is not None

    _field = st.from_regex(r"\A(\*|[0-9]{1,2}(-[0-9]{1,2})?)(/[0-9]{1,2})?(,[0-9]{1,2})?\Z")

    @given(st.lists(_field, min_size=5, max_size=5))
    def test_whatever_is_let_pass_dagster_takes_too(self, fields: list[str]) -> None:
        cron = " ".join(fields)
        if cron_fault(cron) is None:
            dg.ScheduleDefinition(name="s", job_name="j", cron_schedule=cron)
