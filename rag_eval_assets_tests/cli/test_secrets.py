"""A key that a service requires, and repeats in errors and answers, is in no byte of what a run leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

KEY = "correct-horse-battery/9876"


def test_a_key_is_in_no_byte_that_is_kept_or_printed(make_place, tmp_path: Path, rag_service) -> None:
    flags = ("--light", "--key-env", "SERVICE_KEY", "--echo-key", "--echo-in-answers", "--fail-every", "3")
    service = rag_service(*flags, env={"SERVICE_KEY": KEY})
    folder = tmp_path / "place"
    folder.mkdir()
    place = make_place(folder)
    target = {
        "type": "http",
        "url": f"{service.url}/query",
        "headers": {"Authorization": {"env": "SERVICE_KEY", "prefix": "Bearer "}},
        "body": {"question": "{question}"},
        "response": {"answer": "/answer"},
        "max_retries": 0,
    }
    chat = {
        "type": "openai-compatible",
        "url": f"{service.url}/v1",
        "model": "light",
        "api_key_env": "SERVICE_KEY",
        "max_retries": 0,
    }
    scorer = {"type": "similarity", "url": f"{service.url}/v1", "model": "light", "api_key_env": "SERVICE_KEY"}
    suite = place.suite(targets={"service": target, "chat": chat}, scorers=[{**scorer, "max_retries": 0}])

    done = place.run("run", suite, "--json", "--verbose", SERVICE_KEY=KEY)
    refused = place.run("run", suite, "--json", "--run-date", "2026-01-05", "--cache", "live", SERVICE_KEY=f"{KEY}-old")
    unset = place.run("run", suite, "--json", "--run-date", "2026-01-06", "--cache", "live", SERVICE_KEY=" ")

    errors = [row["error"] or "" for row in answers(folder)]
    assert any("stumbled. You sent: Bearer [redacted]" in error for error in errors)
    assert any("[redacted]" in (row["answer"] or "") for row in answers(folder))
    assert (refused.returncode, "401" in refused.stderr) == (3, True)
    assert (unset.returncode, "'SERVICE_KEY' is unset or empty" in json.loads(unset.stdout)["error"]) == (2, True)
    printed = "".join(run.stdout + run.stderr for run in (done, refused, unset))
    assert KEY not in printed
    holding = [path for path in folder.rglob("*") if path.is_file() and holds(path)]
    assert holding == []
    assert list(folder.rglob("*.db"))  # Dagster's event storage was among what was looked through
    assert list(folder.rglob("*.cassette"))


def answers(folder: Path) -> list[dict[str, str | None]]:
    tables = folder.rglob("generated_answers/*/*.parquet")
    return [row for path in tables for row in pq.read_table(path).to_pylist()]


def holds(path: Path) -> bool:
    content = path.read_bytes()
    if path.suffix == ".parquet":  # whose pages are compressed
        content += str(pq.read_table(path).to_pydict()).encode()
    return KEY.encode() in content or b"horse-battery" in content
