"""The journal keeps every answer that was paid for, whatever happens to the process or to the file."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.recording.journal import Journal

ROOT = Path(__file__).parents[2]
IDENTITY = {"type": "some", "model": "m"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suite" / "target" / "2026-03-01.jsonl"


def fill(path: Path, **records: dict[str, Any]) -> None:
    with Journal(path) as journal:
        for key, record in records.items():
            journal.append(key, record)


def held(path: Path, *keys: str) -> list[dict[str, Any] | None]:
    with Journal(path) as journal:
        return [journal.get(key) for key in keys]


def test_what_was_appended_is_there_the_next_time(path: Path) -> None:
    fill(path, a={"answer": "A"}, b={"answer": None})
    fill(path, c={"answer": "C"})
    assert held(path, "a", "b", "c", "d") == [{"answer": "A"}, {"answer": None}, {"answer": "C"}, None]
    with Journal(path) as journal:
        assert len(journal) == 3


def test_the_newest_record_of_a_key_counts(path: Path) -> None:
    fill(path, a={"answer": "first"})
    fill(path, a={"answer": "second"})
    assert held(path, "a") == [{"answer": "second"}]


def test_lone_surrogates_line_ends_and_nan_survive(path: Path) -> None:
    record = {"answer": "half \ud83d, ü😀\u2028\r\n", "passages": [{"score": math.nan}, {"score": -math.inf}]}
    fill(path, a=record)
    [found] = held(path, "a")
    assert found is not None
    assert found["answer"] == record["answer"]
    assert math.isnan(found["passages"][0]["score"])
    assert found["passages"][1]["score"] == -math.inf


def test_a_torn_last_line_is_cut_and_the_file_goes_on_from_there(path: Path) -> None:
    fill(path, a={"answer": "A"}, b={"answer": "B" * 100})
    whole = path.read_bytes()
    for length in range(whole.index(b"\n") + 2, len(whole)):
        path.write_bytes(whole[:length])
        assert held(path, "a", "b") == [{"answer": "A"}, None]
        fill(path, c={"answer": "C"})
        assert held(path, "a", "b", "c") == [{"answer": "A"}, None, {"answer": "C"}]
        assert all(json.loads(line) for line in path.read_bytes().splitlines())


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{}",
        b"null",
        b"[1]",
        b'{"key": "b"}',
        b'{"key": "b", "record": 3}',
        b'{"key": "b", "rec\r\r"}',
        b"\0" * 40,
        b"\xff\xfe\x85\x0c",
        b'{"key": "b", "record": {"answer": "B"}',
    ],
)
def test_a_damaged_line_in_the_middle_costs_only_itself(path: Path, damaged: bytes) -> None:
    fill(path, a={"answer": "A"}, b={"answer": "B"}, c={"answer": "C"})
    first, _, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damaged + b"\n" + last)
    assert held(path, "a", "b", "c") == [{"answer": "A"}, None, {"answer": "C"}]
    fill(path, d={"answer": "D"})
    assert held(path, "a", "c", "d") == [{"answer": "A"}, {"answer": "C"}, {"answer": "D"}]


def test_a_committed_journal_is_gone(path: Path) -> None:
    fill(path, a={"answer": "A"})
    with Journal(path) as journal:
        journal.close_committed()
        assert journal.get("a") is None
    assert not path.exists()
    assert held(path, "a") == [None]


def test_the_key_is_of_all_that_was_asked() -> None:
    keys = {
        Journal.key(IDENTITY, "e1", "Where?", 0),
        Journal.key({**IDENTITY, "model": "n"}, "e1", "Where?", 0),
        Journal.key(IDENTITY, "e2", "Where?", 0),
        Journal.key(IDENTITY, "e1", "Where ?", 0),
        Journal.key(IDENTITY, "e1", "Where?", 1),
        Journal.key(IDENTITY, "e1Where?", "", 0),
    }
    assert len(keys) == 6
    assert Journal.key({"model": "m", "type": "some"}, "e1", "Where?", 0) in keys


HOLDER = """
import sys, time
from pathlib import Path
from rag_eval_assets.recording.journal import Journal

with Journal(Path(sys.argv[1])) as journal:
    journal.append("a", {"answer": "A"})
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_journal_belongs_to_one_process_until_that_one_ends_however_it_ends(path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InfrastructureError) as caught, Journal(path):
            pass
        assert str(caught.value) == (
            "another run is asking the same target the same questions for this date (2026-03-01). "
            "Wait for it to end, or stop it and run again: no answer that it got is lost"
        )
        with Journal(path.with_name("2026-03-02.jsonl")) as another:
            assert len(another) == 0
    finally:
        holder.kill()
        holder.communicate()
    assert held(path, "a") == [{"answer": "A"}]


def test_a_place_that_cannot_be_opened_is_named_and_not_kept_locked(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.mkdir()
    with pytest.raises(InfrastructureError, match=r"journal 'j\.jsonl' cannot be opened \("), Journal(path):
        pass
    path.rmdir()
    fill(path, a={"answer": "A"})
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match="cannot be opened"), Journal(tmp_path / "file" / "j.jsonl"):
        pass


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.recording.journal import Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
with Journal(Path(sys.argv[1])) as journal:
    journal.append("a", {"answer": "A" * 100})
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        journal.append("b", {"answer": "B" * 100})
    except InfrastructureError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.append("c", {"answer": "C" * 100})
"""


def test_half_a_line_on_a_full_disk_does_not_spoil_the_next_one(path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.startswith("journal '2026-03-01.jsonl' cannot be written (")
    assert held(path, "a", "b", "c") == [{"answer": "A" * 100}, None, {"answer": "C" * 100}]
