"""The cassette as files: what is written when, what a reader accepts, and what survives kills, branches and readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.recording.cassette import review
from rag_eval_assets.recording.cassette.compact import compact
from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.cassette.store import Cassette, UnusableRecording, close_cassette, open_cassette
from rag_eval_assets.recording.cassette.vectors import pack
from rag_eval_assets.recording.request import canonical_request, embeddings_identity, request_key

IDENTITY = embeddings_identity("http://h/v1", "m")
ROOT = Path(__file__).parents[2]


def key_of(text: str) -> str:
    return request_key(IDENTITY, text)


def entry(text: str, vector: list[float] | None = None, at: str = "2026-03-01T00:00:00+00:00") -> Entry:
    response = {"vector": pack(vector or [float(len(text)), 1.0])}
    return Entry(key_of(text), canonical_request(IDENTITY, text), response, {"recorded_at": at, "latency_ms": 5.0})


def record(folder: Path, *entries: Entry) -> None:
    cassette = open_cassette(folder)
    cassette.records()
    for one in entries:
        cassette.put(one)
    close_cassette(cassette)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "suite.cassette"


@pytest.fixture
def reader(folder: Path) -> Generator[Cassette]:
    cassette = open_cassette(folder)
    yield cassette
    close_cassette(cassette)


def test_recordings_stand_sorted_in_shards_one_line_each(folder: Path) -> None:
    texts = [f"text {number}" for number in range(40)]
    record(folder, *map(entry, texts))
    keys: list[str] = []
    for name, content in files(folder).items():
        lines = [json.loads(line)["key"] for line in content.decode().splitlines()]
        assert lines == sorted(lines)
        assert {key[0] for key in lines} == {name[0]}
        keys += lines
    assert sorted(keys) == sorted(map(key_of, texts))
    assert not (folder / ".segments").exists()


def test_equal_recordings_give_equal_bytes_whatever_their_order(tmp_path: Path) -> None:
    texts = [entry(f"text {number}") for number in range(9)]
    record(tmp_path / "a", *texts)
    record(tmp_path / "b", *texts[4:])
    record(tmp_path / "b", *texts[:5][::-1])
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_git_is_told_to_keep_the_lines_of_both_branches_and_to_leave_working_files_out(folder: Path) -> None:
    record(folder, entry("x"))
    assert "*.jsonl merge=union" in (folder / ".gitattributes").read_text()
    assert (folder / ".gitignore").read_text().splitlines() == ["/.segments/", "/.*.lock"]


def test_a_recording_is_there_for_other_readers_before_it_is_sorted_in(folder: Path, reader: Cassette) -> None:
    other = Cassette(folder)
    other.put(entry("early"))
    assert reader.get(key_of("early")) is None
    reader.refresh()
    found = reader.get(key_of("early"))
    assert found is not None
    assert found.response == entry("early").response
    other.close()


def test_a_segment_of_a_live_process_is_left_alone(folder: Path) -> None:
    alive = Cassette(folder)
    alive.put(entry("mine"))
    before = {path: path.read_bytes() for path in (folder / ".segments").iterdir()}
    record(folder, entry("other"))
    assert {path: path.read_bytes() for path in (folder / ".segments").iterdir()} == before
    assert key_of("mine") not in b"".join(files(folder).values()).decode()
    alive.records()
    alive.close()
    assert set(review.entries_of(folder)) == {key_of("mine"), key_of("other")}


def test_what_a_killed_process_recorded_is_sorted_in_by_the_next_and_its_torn_line_is_not(folder: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from rag_eval_assets_tests.recording import test_cassette as t
cassette = t.Cassette(Path({str(folder)!r}))
for number in range(20):
    cassette.put(t.entry(f"killed {{number}}"))
segment = next(Path({str(folder)!r}, ".segments").iterdir())
with segment.open("ab") as file:
    file.write(t.entry("torn").to_line()[:-9])
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert killed.returncode == -9
    record(folder, entry("after"))
    texts = [f"killed {number}" for number in range(20)]
    assert set(review.entries_of(folder)) == {*map(key_of, texts), key_of("after")}
    assert not list(review.problems(folder))


def test_recording_again_replaces_and_the_same_answer_changes_no_byte(folder: Path) -> None:
    record(folder, entry("x", [1.0, 2.0]))
    before = files(folder)
    record(folder, entry("x", [1.0, 2.0], at="2026-04-01T00:00:00+00:00"))
    assert files(folder) == before
    record(folder, entry("x", [2.0, 1.0], at="2026-04-01T00:00:00+00:00"))
    assert review.entries_of(folder)[key_of("x")].response == entry("x", [2.0, 1.0]).response
    assert sum(content.count(b"\n") for content in files(folder).values()) == 1


def test_readers_take_unsorted_and_repeated_lines(folder: Path) -> None:
    folder.mkdir()
    lines = [entry(f"text {number}").to_line() for number in range(12)]
    (folder / "0.jsonl").write_bytes(b"\n".join([*lines[::-1], b"", *lines]))
    cassette = Cassette(folder)
    assert all(cassette.get(key_of(f"text {number}")) is not None for number in range(12))


def test_a_key_with_two_answers_is_a_named_error_and_costs_no_other_key(folder: Path) -> None:
    record(folder, entry("good"))
    shard = folder / f"{key_of('bad')[0]}.jsonl"
    with shard.open("ab") as file:
        file.write(entry("bad", [1.0, 2.0]).to_line() + entry("bad", [2.0, 1.0]).to_line())
    cassette = Cassette(folder)
    assert cassette.get(key_of("good")) is not None
    with pytest.raises(UnusableRecording) as raised:
        cassette.get(key_of("bad"))
    assert key_of("bad") in str(raised.value)
    assert shard.name in raised.value.place
    assert "rag-eval cassette merge suite.cassette --prefer newest" in raised.value.fix
    with pytest.raises(ConfigurationError, match=r"1 key is recorded with different answers .* --prefer newest"):
        review.merge(folder, [])
    review.merge(folder, [], review.PREFER["newest"])
    assert Cassette(folder).get(key_of("bad")) is not None


@pytest.mark.parametrize("harm", ["cut", "flipped", "edited"])
def test_a_corrupt_entry_is_isolated_and_named_with_what_to_run(folder: Path, harm: str) -> None:
    record(folder, entry("good"), entry("bad"), entry("fine"))
    shard = folder / f"{key_of('bad')[0]}.jsonl"
    line = entry("bad").to_line().rstrip(b"\n")
    changed = {
        "cut": line[:-20],
        "flipped": line.replace(b'"data":"', b'"data":"B', 1),
        "edited": line.replace(b'"input":"bad"', b'"input":"Bad"'),
    }[harm]
    shard.write_bytes(shard.read_bytes().replace(line, changed))
    cassette = Cassette(folder)
    assert cassette.get(key_of("good")) is not None
    assert cassette.get(key_of("fine")) is not None
    with pytest.raises(UnusableRecording) as raised:
        cassette.get(key_of("bad"))
    assert key_of("bad") in str(raised.value)
    assert raised.value.place.startswith(f"{shard.name}, line ")
    assert f"rag-eval cassette verify suite.cassette --drop {key_of('bad')[:12]}" in raised.value.fix
    (problem,) = review.problems(folder)
    assert problem.key == key_of("bad")
    record(folder, entry("new"))
    assert changed in shard.read_bytes()  # only a person may drop it
    record(folder, entry("bad", [7.0, 7.0]))
    assert not list(review.problems(folder))


def test_an_answer_of_lone_surrogates_is_kept_and_a_number_that_is_none_is_not(folder: Path) -> None:
    odd = Entry(key_of("q"), canonical_request(IDENTITY, "q"), {"text": "half \ud83d"}, {"recorded_at": "2026"})
    record(folder, odd)
    assert review.entries_of(folder)[key_of("q")].response == {"text": "half \ud83d"}
    assert not list(review.problems(folder))
    with pytest.raises(ValueError, match="JSON compliant"):
        record(folder, Entry(key_of("r"), canonical_request(IDENTITY, "r"), {"score": float("nan")}, {}))


def test_two_processes_recording_at_once_lose_nothing(folder: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from rag_eval_assets_tests.recording import test_cassette as t
for start in range(0, 60, 20):
    t.record(Path({str(folder)!r}), *[t.entry(f"{{sys.argv[1]}} {{n}}") for n in range(start, start + 20)])
"""
    running = [subprocess.Popen([sys.executable, "-c", program, name], cwd=ROOT) for name in ("left", "right", "third")]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    texts = [f"{name} {number}" for name in ("left", "right", "third") for number in range(60)]
    assert set(review.entries_of(folder)) == set(map(key_of, texts))
    assert not (folder / ".segments").exists()
    assert not list(review.problems(folder))


def test_branches_that_recorded_different_keys_merge_without_conflict_and_replay_both(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    folder = tmp_path / "suite.cassette"
    git("init", "-q", "-b", "main")
    record(folder, *[entry(f"base {number}") for number in range(20)])
    git("add", "-A")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "other")
    record(folder, *[entry(f"theirs {number}") for number in range(40)])
    git("add", "-A")
    git("commit", "-qm", "theirs")
    git("checkout", "-q", "main")
    record(folder, *[entry(f"ours {number}") for number in range(40)])
    git("add", "-A")
    git("commit", "-qm", "ours")
    git("merge", "-q", "--no-edit", "other")
    assert ".lock" not in git("ls-files")
    texts = [f"{name} {n}" for name, count in (("base", 20), ("ours", 40), ("theirs", 40)) for n in range(count)]
    cassette = Cassette(folder)
    assert all(cassette.get(key_of(text)) == entry(text) for text in texts)
    review.merge(folder, [])
    assert not list(review.problems(folder))
    assert set(review.entries_of(folder)) == set(map(key_of, texts))


def test_a_reader_changes_nothing_on_a_folder_that_it_may_not_write(folder: Path) -> None:
    record(folder, entry("x"))
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}
    for path in [*folder.iterdir(), folder]:
        path.chmod(path.stat().st_mode & 0o555)
    try:
        cassette = open_cassette(folder)
        assert cassette.get(key_of("x")) is not None
        assert cassette.get(key_of("y")) is None
        close_cassette(cassette)
    finally:
        folder.chmod(0o755)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_an_interrupted_compaction_is_repeated_without_harm(folder: Path) -> None:
    cassette = Cassette(folder)
    cassette.put(entry("x", [1.0, 2.0]))
    cassette.close()  # it did not say that it records, so nothing is sorted in
    (segment,) = (folder / ".segments").iterdir()
    kept = segment.read_bytes()
    compact(folder)
    before = files(folder)
    segment.parent.mkdir(exist_ok=True)
    segment.write_bytes(kept)  # as if killed before the segment was deleted
    compact(folder)
    assert files(folder) == before


def test_a_segment_that_turns_up_late_does_not_replace_what_is_newer(folder: Path) -> None:
    record(folder, entry("x", [9.0, 9.0], at="2026-05-01T00:00:00+00:00"))
    late = Cassette(folder)
    late.put(entry("x", [1.0, 1.0], at="2026-04-01T00:00:00+00:00"))
    late.records()
    late.close()
    assert review.entries_of(folder)[key_of("x")].response == entry("x", [9.0, 9.0]).response


def test_a_review_shows_what_came_went_and_moved(tmp_path: Path) -> None:
    record(tmp_path / "a", entry("same"), entry("gone"), entry("moved", [1.0, 0.0]), entry("longer", [1.0]))
    record(tmp_path / "b", entry("same"), entry("new"), entry("moved", [0.6, 0.8]), entry("longer", [1.0, 2.0]))
    changes = review.compare(review.entries_of(tmp_path / "a"), review.entries_of(tmp_path / "b"))
    assert {str(change.entry.request["input"]): (change.kind, change.cosine) for change in changes} == {
        "gone": ("went", None),
        "new": ("came", None),
        "moved": ("changed", pytest.approx(0.6)),
        "longer": ("changed", None),
    }


def test_merging_takes_in_what_another_cassette_has(tmp_path: Path) -> None:
    record(tmp_path / "a", entry("x"), entry("both"))
    record(tmp_path / "b", entry("y"), entry("both"))
    review.merge(tmp_path / "a", [tmp_path / "b"])
    assert set(review.entries_of(tmp_path / "a")) == set(map(key_of, ("x", "y", "both")))
    assert review.statistics(tmp_path / "a")["recordings"] == 3
