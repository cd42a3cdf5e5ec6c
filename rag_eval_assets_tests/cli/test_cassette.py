"""`rag-eval cassette`: what each command prints and changes, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from rag_eval_assets.cli.app import app
from rag_eval_assets.errors import ConfigurationError, EvalError, RecordingMissingError
from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.cassette.store import close_cassette, open_cassette
from rag_eval_assets.recording.cassette.vectors import pack
from rag_eval_assets.recording.request import canonical_request, embeddings_identity, request_key

Command = Callable[..., Result]
IDENTITY = embeddings_identity("https://api.example/v1", "embed")


def record(folder: Path, vectors: dict[str, list[float]], **identity: Any) -> dict[str, str]:
    """Record these vectors; returns the key of each text."""
    whole = {**IDENTITY, **identity}
    cassette = open_cassette(folder)
    cassette.records()
    keys: dict[str, str] = {}
    for text, vector in vectors.items():
        keys[text] = request_key(whole, text)
        meta = {"recorded_at": "2026-03-01T10:00:00+00:00"}
        cassette.put(Entry(keys[text], canonical_request(whole, text), {"vector": pack(vector)}, meta))
    close_cassette(cassette)
    return keys


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, fails: type[EvalError] | None = None) -> Result:
        result = CliRunner().invoke(app, ["cassette", *arguments])
        if fails is None:
            assert result.exception is None, result.exception
        else:
            assert isinstance(result.exception, fails), result.output
        return result

    return run


def test_key_prints_the_key_of_the_contract(command: Command) -> None:
    arguments = ("--url", "https://api.openai.com/v1", "--model", "text-embedding-3-small")
    text = ("--text", "Refunds are processed within 30 days.")
    first = "05eea24412e2967ba745fe46e319f730d73da98e4f01c66155909451f23a33eb"
    third = "a800e5ceeebc52b82288f8e9a138e7330e0192cc9ad9fd543a06bdd9d2f9ceee"
    assert command("key", *arguments, *text).output == f"{first}\n"
    assert command("key", *arguments, *text, "--trial", "0").output == f"{first}\n"
    assert command("key", *arguments, *text, "--trial", "2").output == f"{third}\n"


def test_ls_and_show_and_stats_look_at_the_only_cassette_here(command: Command, tmp_path: Path) -> None:
    keys = record(tmp_path / "s.cassette", {"alpha": [3.0, 4.0], "a text\nwith \x1b[31mcolour " + "x" * 99: [1.0]})
    listed = command("ls").output
    assert f'{keys["alpha"][:12]}  2026-03-01T10:00:00  embeddings embed  "alpha"' in listed
    assert "\x1b" not in listed
    assert len(listed.splitlines()) == 2
    shown = json.loads(command("show", keys["alpha"][:8]).output)
    assert shown["request"]["input"] == "alpha"
    assert shown["response"]["vector"] == {"form": "float32", "dims": 2, "norm": 5.0, "first": [3.0, 4.0]}
    raw = json.loads(command("show", keys["alpha"], "--raw").output)
    assert raw["response"] == {"vector": pack([3.0, 4.0])}
    counted = json.loads(command("stats", "--json").output)
    assert (counted["recordings"], counted["kinds"], counted["problems"]) == (2, {"embeddings embed": 2}, 0)
    assert counted["vectors"] == {"float32 x 1": 1, "float32 x 2": 1}


def test_diff_shows_what_came_went_and_how_far_vectors_moved(command: Command, tmp_path: Path) -> None:
    record(tmp_path / "a.cassette", {"same": [1.0, 1.0], "gone": [1.0, 0.0], "moved": [1.0, 0.0]})
    keys = record(tmp_path / "b.cassette", {"same": [1.0, 1.0], "new": [1.0, 0.0], "moved": [0.6, 0.8]})
    lines = command("diff", "a.cassette", "b.cassette").output.splitlines()
    assert f'~ {keys["moved"][:12]}  cosine 0.6  embeddings embed  "moved"' in lines
    assert f'+ {keys["new"][:12]}  embeddings embed  "new"' in lines
    assert sum(line.startswith("-") for line in lines) == 1
    assert lines[-1] == "1 came, 1 went, 1 changed"
    changes = json.loads(command("diff", "a.cassette", "b.cassette", "--json").output)["changes"]
    assert {change["kind"]: change["cosine"] for change in changes}["changed"] == pytest.approx(0.6)


def test_verify_names_what_is_damaged_and_drops_it_when_told(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "s.cassette"
    keys = record(folder, {"alpha": [3.0, 4.0], "beta": [1.0]})
    assert "2 recordings, all whole" in command("verify").output
    shard = folder / f"{keys['alpha'][0]}.jsonl"
    shard.write_bytes(shard.read_bytes().replace(b'"alpha"', b'"Alpha"') + b"<<<<<<< ours\n")
    found = command("verify", fails=RecordingMissingError).output
    assert f"{shard.name}, line 1: its request has another key (key {keys['alpha']})" in found
    assert "not an entry (JSONDecodeError) (key unknown)" in found
    command("verify", "--drop", keys["alpha"][:12], fails=RecordingMissingError)
    assert "1 recording, all whole" in command("verify", "--drop-unreadable").output


def test_merge_takes_others_in_and_asks_where_they_contradict(command: Command, tmp_path: Path) -> None:
    record(tmp_path / "a.cassette", {"one": [1.0], "both": [1.0, 0.0]})
    record(tmp_path / "b.cassette", {"two": [2.0], "both": [0.0, 1.0]})
    before = {path.name: path.read_bytes() for path in (tmp_path / "a.cassette").glob("*.jsonl")}
    command("merge", "a.cassette", "b.cassette", fails=ConfigurationError)
    assert {path.name: path.read_bytes() for path in (tmp_path / "a.cassette").glob("*.jsonl")} == before
    command("merge", "a.cassette", "b.cassette", "--prefer", "newest")
    assert json.loads(command("stats", "a.cassette", "--json").output)["recordings"] == 3


def test_prune_drops_what_the_suite_no_longer_uses(command: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "Q?", "answer": "kept"}\n')
    scorer = {"type": "similarity", "url": "https://api.example/v1", "model": "embed", "references": ["also kept"]}
    target = {"type": "http", "url": "https://rag.example/?q={question}", "response": {"answer": "/answer"}}
    content = {"datasets": [{"file": "rows.jsonl"}], "targets": {"rag": target}, "scorers": [scorer]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(content))
    record(tmp_path / "s.cassette", {"kept": [1.0], "also kept": [1.0], "an old answer": [1.0]})
    record(tmp_path / "s.cassette", {"kept": [1.0]}, model="older")
    failed = command("prune", "s.yaml", fails=ConfigurationError)
    assert "rag-eval run s.yaml --cache replay" in str(failed.exception)  # what was answered is not known yet
    _put_answers(tmp_path, "kept answer")
    record(tmp_path / "s.cassette", {"kept answer": [1.0]})
    assert "2 recordings would go" in command("prune", "s.yaml", "--dry-run").output
    assert "2 recordings dropped" in command("prune", "s.yaml").output
    left = command("ls").output
    assert [text in left for text in ('"kept"', '"also kept"', '"kept answer"', "an old answer", "older")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def _put_answers(folder: Path, answer: str) -> None:
    import pyarrow as pa

    from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey
    from rag_eval_assets.tables import GENERATED_ANSWERS

    row = {"example_id": "row-0", "trial": 0, "status": "ok", "answer": answer}
    table = pa.Table.from_pylist([row], schema=GENERATED_ANSWERS.schema)
    key = TableKey("s", GENERATED_ANSWERS.name, "2026-03-01", "rag")
    LocalStore(folder / "home" / "tables").write(key, table, Provenance("1"))


@pytest.mark.parametrize("arguments", [("ls",), ("ls", "nowhere.yaml"), ("stats", "s.yaml")])
def test_a_place_without_a_cassette_is_a_clear_error(
    command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    scorer = {"type": "similarity", "url": "https://h/v1", "model": "m"}
    content = {"datasets": [{"file": "r.jsonl"}], "targets": {"t": {"type": "shell", "command": ["cat"]}}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({**content, "scorers": [scorer]}))
    command(*arguments, fails=ConfigurationError)


def test_a_key_that_is_unknown_or_short_is_a_clear_error(command: Command, tmp_path: Path) -> None:
    record(tmp_path / "s.cassette", {f"text {number}": [1.0] for number in range(40)})
    assert "keys begin with" in str(command("show", "a", fails=ConfigurationError).exception)
    assert "no recording of key" in str(command("show", "nothing", fails=RecordingMissingError).exception)
