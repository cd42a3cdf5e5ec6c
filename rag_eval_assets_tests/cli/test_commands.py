"""The smaller commands, and how the command line behaves in a pipe."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from rag_eval_assets import __version__

ROOT = Path(__file__).parents[2]


def test_version(place) -> None:
    process = place.run("--version")
    assert (process.returncode, process.stdout, process.stderr) == (0, f"rag-eval {__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("report",)])
def test_without_a_command_there_is_help_that_lists_them(place, arguments: tuple[str, ...]) -> None:
    process = place.run(*arguments)
    assert process.stderr == ""
    assert f"Usage: {' '.join(('rag-eval', *arguments))} " in process.stdout
    wanted = ("show", "recompute") if arguments else ("init", "run", "validate", "schema", "ui", "report")
    assert all(f" {name} " in process.stdout for name in wanted)


def test_the_schemas_are_valid_and_hold_what_they_describe(place, evaluated) -> None:
    schemas = {name: json.loads(place.run("schema", name).stdout) for name in ("suite", "report")}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    report = json.loads(evaluated.report.read_text())
    Draft202012Validator(schemas["report"]).validate(report)
    assert not Draft202012Validator(schemas["report"]).is_valid({**report, "timestamp": 3})
    assert schemas["report"] == json.loads((ROOT / "docs" / "report.schema.json").read_text())
    assert "scorers" in schemas["suite"]["properties"]


def test_validate_names_what_a_suite_needs_and_where_it_was_found(place, weights: Path) -> None:
    process = place.run("validate", place.suite(), "--strict")
    assert (process.returncode, process.stderr) == (0, "")
    first, *needs = process.stdout.splitlines()
    assert first.startswith("harbour.yaml: valid (harbour, sha256 ")
    assert needs[0] == "  found    examples: 3 examples of rows"
    assert needs[1] == "  found    corpus: 3 documents"
    assert needs[2].startswith("  found    model all-MiniLM-L6-v2: ")
    assert not place.home.exists()


@pytest.mark.parametrize(
    ("arguments", "code"), [((), 0), (("--strict",), 2), (("--download",), 3), (("--download", "--strict"), 3)]
)
def test_validate_lists_a_model_that_is_missing_and_fails_only_if_strict(
    place, arguments: tuple[str, ...], code: int
) -> None:
    suite = place.suite(scorers=[{"type": "bertscore", "model": "bert-base-uncased"}])
    process = place.run("validate", suite, *arguments)
    assert (process.returncode, process.stderr) == (code, "")
    assert process.stdout.startswith("harbour.yaml: valid, but cannot run here: 1 thing is missing (harbour, ")
    missing = [line for line in process.stdout.splitlines() if line.startswith("  missing  ")]
    assert [line.split(":")[0] for line in missing] == ["  missing  model bert-base-uncased"]


def test_validate_lists_a_variable_that_is_not_set_and_says_when_it_is_not_needed(place, weights: Path) -> None:
    headers = {"Authorization": {"env": "HARBOUR_TOKEN"}}
    target = {"type": "http", "url": "http://h/", "body": "{question}", "response": {"answer": ""}, "headers": headers}
    suite = place.suite(targets={"live": target}, corpus=None)
    process = place.run("validate", suite, "--strict")
    assert (process.returncode, process.stderr) == (0, "")
    first, _, corpus, _, variable = process.stdout.splitlines()
    assert first.startswith("harbour.yaml: valid, but only replays here: 1 variable is not set (")
    assert corpus == "  found    corpus: none; passages come from the target"
    told = "not set; target live reads it for every call that is not replayed"
    assert variable == f"  missing  variable HARBOUR_TOKEN: {told}"
    again = place.run("validate", suite, HARBOUR_TOKEN="hushed")
    assert again.stdout.startswith("harbour.yaml: valid (")
    assert "hushed" not in again.stdout


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"datasets": [{"file": "nowhere.csv"}]}, ["examples", "corpus"]),
        ({"scorers": [{"type": "sentence_cosine", "model": "all-MiniLM-L7"}]}, ["model all-MiniLM-L7"]),
    ],
)
def test_validate_fails_where_the_suite_names_what_is_not_there(place, changes, wrong: list[str]) -> None:
    process = place.run("validate", place.suite(**changes))
    assert (process.returncode, process.stderr) == (2, "")
    assert process.stdout.startswith("harbour.yaml: cannot be run as it is (")
    lines = [line for line in process.stdout.splitlines() if line.startswith("  wrong    ")]
    assert [line.split(":")[0].removeprefix("  wrong    ") for line in lines] == wrong


def test_a_port_that_is_in_use_is_told_before_anything_starts(place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = place.run("ui", "--port", str(port))
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith(f"error: port {port} of 127.0.0.1 is in use")
    assert len(process.stderr.splitlines()) == 1
    assert not place.home.exists()


def test_the_page_is_announced_before_it_is_there_without_what_nobody_can_change(place) -> None:
    """What would become Dagster is replaced, so that nothing is started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = (
        "import os, subprocess, sys, warnings; os.execv = lambda program, _: sys.exit(subprocess.run([program, '-c', "
        "'import warnings; warnings.warn(\"Function `dev_command` is superseded and\")']).returncode); "
        "from rag_eval_assets.cli.main import main; main()"
    )
    command = [place.command()[0], "-c", script, "ui", "--port", port]
    process = subprocess.run(
        command, cwd=place.folder, env=place.environment(), capture_output=True, text=True, check=True, timeout=300
    )
    assert process.stderr.splitlines() == [
        "suites: embedded",
        f"history: {place.home}",
        f"starting; in half a minute open http://127.0.0.1:{port} (Ctrl-C ends it)",
    ]


@pytest.mark.parametrize("name", ["what?", "half%20"])
def test_a_home_that_misleads_dagsters_database_is_refused(place, name: str) -> None:
    process = place.run("run", place.suite(), "--json", RAG_EVAL_HOME=str(place.folder / name))
    assert process.returncode == 2
    assert "RAG_EVAL_HOME" in json.loads(process.stdout)["error"]
    assert "Traceback" not in process.stderr


def test_validate_refuses_an_invalid_suite(place) -> None:
    process = place.run("validate", place.suite(targets={}))
    assert (process.returncode, process.stdout) == (2, "")
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: harbour.yaml: targets: ")


@pytest.mark.parametrize("arguments", [("schema", "report"), ("report", "show"), ("validate",), ()])
def test_a_reader_that_has_gone_gets_no_traceback(evaluated, arguments: tuple[str, ...]) -> None:
    if arguments == ("report", "show"):
        arguments = (*arguments, str(evaluated.report))
    reader, writer = os.pipe()
    os.close(reader)  # what `| head` is once it has seen enough
    process = subprocess.run(
        evaluated.place.command(*arguments),
        cwd=evaluated.place.folder,
        env=evaluated.place.environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=300,
    )
    os.close(writer)
    assert process.stderr == ""
