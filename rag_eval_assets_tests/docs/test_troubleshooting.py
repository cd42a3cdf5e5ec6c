"""Every message that docs/troubleshooting.md shows is printed by the program, for the cause that the page gives."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from rag_eval_assets.weights.resolve import resolve

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
LINE = re.compile(r"(?m)^(?:error: |differs: ).*$")
IN_DAGSTER = re.compile(r"(?m)^dagster\S*\.Failure: (.*)$|InfrastructureError: (.*)$")
CSV = "question,answer,context\nWhen does the mill grind?,On Fridays.,The mill grinds on Fridays.\n"


@dataclass(frozen=True)
class Place:
    """A folder with a small suite in it, `mill.yaml`, and the command line."""

    folder: Path
    commands: Any

    def write(self, name: str, content: str | bytes) -> None:
        (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def suite(self, name: str = "mill.yaml", **changes: Any) -> str:
        if not (self.folder / "mill.csv").exists():
            self.write("mill.csv", CSV)
        content = {
            "datasets": [{"file": "mill.csv"}],
            "corpus": {"source": "contexts"},
            "targets": {"pipeline": {"type": "embedded"}},
            "scorers": [{"type": "sentence_cosine"}],
            **changes,
        }
        self.write(name, yaml.safe_dump(content))
        return name

    def rag_eval(self, *words: str, code: int = 2, **variables: str) -> str:
        """The message of a command that ends with `code`."""
        done = self.commands.run(self.folder, "rag-eval", *words, **variables)
        assert done.returncode == code, done.stderr
        return (LINE.findall(done.stdout + done.stderr) or [""])[0].replace(f"{self.folder}/", "")

    def materialize(self, *assets: str, code: int = 0) -> str:
        """The message of Dagster's own command."""
        home = self.folder / ".rag-eval"
        command = ("asset", "materialize", "-m", "rag_eval_assets.definitions", "--partition", "2026-03-01", "--select")
        variables = {
            "RAG_EVAL_HOME": str(home),
            "DAGSTER_HOME": str(home / "dagster"),
            "RAG_EVAL_SUITES": str(self.folder / "mill.yaml"),
        }
        (home / "dagster").mkdir(parents=True, exist_ok=True)
        done = self.commands.run(self.folder, "dagster", *command, ",".join(assets), **variables)
        assert done.returncode == code, done.stderr
        return next((first or second for first, second in IN_DAGSTER.findall(done.stderr)), "")

    def report(self) -> Path:
        (path,) = self.folder.glob(".rag-eval/reports/**/*.json")
        return path


def rows(place: Place, content: str | bytes) -> str:
    place.write("mill.csv", content)
    return place.rag_eval("run", place.suite(corpus={"source": "sample"}))


def untold(place: Place) -> str:
    place.write("mill.csv", "ask,answer,context\nWho?,She.,She did.\n")
    return place.rag_eval("init", "mill.csv")


def hub(place: Place) -> str:
    return place.rag_eval("run", place.suite(datasets=[{"huggingface": "somebody/questions"}]))


def tampered(place: Place) -> str:
    shutil.copytree(resolve("all-MiniLM-L6-v2").path, place.folder / "minilm")
    place.write("minilm/model.safetensors", "other weights")
    return place.rag_eval("run", place.suite(models={"all-MiniLM-L6-v2": {"folder": "minilm"}}))


def held(place: Place) -> str:
    lock = place.folder / ".rag-eval/journals/mill/pipeline/2026-03-01.lock"
    lock.parent.mkdir(parents=True)
    with FileLock(lock):
        return place.rag_eval("run", place.suite(), "--run-date", "2026-03-01", code=3)


def missing_input(place: Place) -> str:
    place.suite()
    return place.materialize("mill/pipeline/sentence_cosine", code=1)


def mixed(place: Place) -> str:
    place.rag_eval("run", place.suite(), "--run-date", "2026-03-01", "--quiet", code=0)
    place.suite(targets={"pipeline": {"type": "embedded", "generator": "another"}})
    place.materialize("mill/pipeline/generated_answers", "mill/pipeline/retrieval_matches")
    return place.materialize("mill/pipeline/eval_report", code=1)


def changed(place: Place) -> str:
    place.rag_eval("run", place.suite(), "--quiet", code=0)
    report = json.loads(place.report().read_text())
    report["retrieval_summary"]["mrr"] = 0.5
    place.report().write_text(json.dumps(report))
    return place.rag_eval("report", "recompute", str(place.report()), code=1)


def later(place: Place) -> str:
    place.write("report.json", json.dumps({"schema_version": "2.0.0"}))
    return place.rag_eval("report", "show", "report.json")


class Denying(BaseHTTPRequestHandler):
    """An S3 service that allows nothing."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b"<Error><Code>AccessDenied</Code></Error>")

    def log_message(self, *_: Any) -> None:
        pass


def denied(place: Place) -> str:
    with ThreadingHTTPServer(("127.0.0.1", 0), Denying) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        told = place.rag_eval(
            "run",
            place.suite(),
            "--run-date",
            "2026-03-01",
            "--quiet",
            code=3,
            **{**BUCKET, "RAG_EVAL_S3_ENDPOINT": endpoint, "AWS_SECRET_ACCESS_KEY": "x", "AWS_ACCESS_KEY_ID": "y"},
        )
        server.shutdown()
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "9af088ba-2600-54fc-b9e2-10053df4722d", told)


BUCKET = {
    "RAG_EVAL_REPORT_BUCKET": "acme-rag-eval-qa",
    "RAG_EVAL_ENV": "qa",
    "AWS_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "none",
    "AWS_SHARED_CREDENTIALS_FILE": "none",
}
BERT = [{"type": "bertscore"}]
CAUSES: dict[str, Callable[[Place], str]] = {
    "A key is unknown": lambda p: p.rag_eval("run", p.suite(scorrers=[])),
    "The suite is not found": lambda p: p.rag_eval("run", "embeded"),
    "A data file stands in the place of a suite": lambda p: (p.suite(), p.rag_eval("run", "mill.csv"))[1],
    "A column cannot be told by its name": untold,
    "The run date does not exist": lambda p: p.rag_eval("run", p.suite(), "--run-date", "2025-12-31"),
    "A column is not found": lambda p: rows(p, "prompt,answer,context\nWho?,She.,She did.\n"),
    "Two columns could be meant": lambda p: rows(p, "question,answer,expected\nWho?,She.,She.\n"),
    "An id stands twice": lambda p: rows(p, "id,question\na,Who?\na,Where?\n"),
    "A CSV row has too many cells": lambda p: rows(p, "question,answer\nWho, if not she?,She.\n"),
    "A file is not UTF-8": lambda p: rows(p, "question,answer\nWhere is the café?,There.\n".encode("cp1252")),
    "The data set cannot be had from the hub": hub,
    "A model is missing": lambda p: p.rag_eval("run", p.suite(scorers=BERT)),
    "The weights are other ones": tampered,
    "There is nothing to resume": lambda p: p.rag_eval("run", p.suite(), "--run-date", "2026-03-01", "--resume"),
    "Another process is generating the answers": held,
    "A table is not in the store": missing_input,
    "A table was made from another version of its input": mixed,
    "The executor is refused": lambda p: p.rag_eval("run", p.suite(), RAG_EVAL_EXECUTOR="k8s"),
    "The home cannot be written": lambda p: p.rag_eval("run", p.suite(), RAG_EVAL_HOME="/proc/home", code=3),
    "A figure does not follow from the examples": changed,
    "A setting of the environment cannot be used": lambda p: p.rag_eval("run", p.suite(), RAG_EVAL_ENV="../../x"),
    "No region is known": lambda p: p.rag_eval("run", p.suite(), **{**BUCKET, "AWS_REGION": ""}),
    "No credentials are found": lambda p: p.rag_eval("run", p.suite(), **BUCKET),
    "A report is not delivered": denied,
    "A file is no report of this version": later,
}


def messages() -> dict[str, str]:
    """Heading to the message below it."""
    found = re.findall(r"(?m)^### (.*)\n\n```text\n(.*)\n```$", PAGE.read_text(encoding="utf-8"))
    return dict(found)


def test_every_message_of_the_page_has_a_cause_here() -> None:
    assert set(messages()) == set(CAUSES)
    assert PAGE.read_text(encoding="utf-8").count("```text") == len(CAUSES)


@pytest.mark.parametrize("heading", CAUSES)
def test_the_message_is_what_is_printed(heading: str, commands, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    printed = CAUSES[heading](Place(tmp_path, commands))
    assert printed != ""
    if request.config.getoption("--paste", default=False) and printed != messages()[heading]:
        text = PAGE.read_text(encoding="utf-8")
        box = f"### {heading}\n\n```text\n"
        PAGE.write_text(text.replace(f"{box}{messages()[heading]}\n", f"{box}{printed}\n"), encoding="utf-8")
        pytest.skip("written into the page")
    assert printed == messages()[heading]
