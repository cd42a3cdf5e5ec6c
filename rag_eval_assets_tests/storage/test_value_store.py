"""A value store: what it gives back is what was put, whatever happens to its file, its disk or the process."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.value_store import HELD_SECONDS, ValueStore

LIMIT = 4_000_000
WRITER = """
import sys
from pathlib import Path
from rag_eval_assets.storage.value_store import ValueStore
file, first, last, limit = Path(sys.argv[1]), *map(int, sys.argv[2:5])
store = ValueStore(file, limit)
for start in range(first, last, 20):
    numbers = range(start, min(start + 20, last))
    store.put_many({number.to_bytes(16, "big"): bytes([number % 251]) * (10 + number) for number in numbers})
    print("put", flush=True)
print(store.take_events().notes, flush=True)
"""

FORKING = """
import os, sys
from pathlib import Path
from rag_eval_assets.storage.value_store import ValueStore
store = ValueStore(Path(sys.argv[1]), 1_000_000)
store.put_many({b"parent": b"v"})
if (child := os.fork()) == 0:
    store.put_many({b"child": b"w"})
    os._exit(0 if store.get_many([b"parent"]) == {b"parent": b"v"} else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Clock:
    """Nanoseconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 1_000_000_000

    def __call__(self) -> int:
        self.now += 1000
        return self.now

    def pass_hours(self, hours: float) -> None:
        self.now += int(hours * 3600 * 1_000_000_000)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def entries(numbers: range, size: int = 100) -> dict[bytes, bytes]:
    return {key(number): random.Random(number).randbytes(size) for number in numbers}


def there(store: ValueStore, numbers: range) -> list[int]:
    found = store.get_many([key(number) for number in numbers])
    return [number for number in numbers if key(number) in found]


def writer(file: Path, first: int, last: int, limit: int = LIMIT) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(file), str(first), str(last), str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "made" / "values.sqlite"


@pytest.fixture
def store(file: Path) -> ValueStore:
    return ValueStore(file, LIMIT)


def test_what_was_put_is_got_and_nothing_else(store: ValueStore, file: Path) -> None:
    values = {b"": b"", b"k": b"\x00\xff", key(1): bytes(300_000)}
    store.put_many(values)
    assert store.get_many([*values, b"other", b"k"]) == values
    assert ValueStore(file, LIMIT).get_many(values) == values
    events = store.take_events()
    assert (events.hits, events.misses, events.damaged, events.not_kept, events.notes) == (3, 1, 0, 0, [])
    assert store.take_events().hits == 0


def test_thousands_of_keys_are_one_call(store: ValueStore) -> None:
    values = entries(range(3001), size=28)
    store.put_many(values)
    assert store.get_many(list(values)) == values


def test_looking_makes_no_file(store: ValueStore, file: Path) -> None:
    assert store.get_many([b"k"]) == {}
    assert store.stats().entries == 0
    store.put_many({})
    store.clear()
    assert not file.parent.exists()


def test_a_later_value_replaces_an_earlier_one(store: ValueStore) -> None:
    store.put_many({b"k": b"old"})
    store.put_many({b"k": b"new"})
    assert store.get_many([b"k"]) == {b"k": b"new"}
    assert store.stats().entries == 1


@pytest.mark.parametrize("column", ["value", "digest", "key"])
def test_a_damaged_entry_is_not_there_and_is_counted(store: ValueStore, file: Path, column: str) -> None:
    store.put_many(entries(range(5)))
    with sqlite3.connect(file) as connection:
        old = connection.execute(f"SELECT {column} FROM entries WHERE key = ?", (key(3),)).fetchone()[0]
        flipped = old[:-1] + bytes([old[-1] ^ 0x80])
        connection.execute(f"UPDATE entries SET {column} = ? WHERE key = ?", (flipped, key(3)))
    asked = flipped if column == "key" else key(3)  # under a wrong key too, a value is not trusted
    assert asked not in store.get_many([asked])
    assert store.take_events().damaged == 1
    assert there(store, range(5)) == [0, 1, 2, 4]
    store.put_many(entries(range(3, 4)))
    assert there(store, range(5)) == [0, 1, 2, 3, 4]


def test_any_byte_of_the_file_may_change_and_no_wrong_value_comes_back(store: ValueStore, file: Path) -> None:
    values = entries(range(60), size=700)
    store.put_many(values)
    store.close()
    intact = file.read_bytes()
    draw = random.Random(0)
    for _ in range(60):
        damaged = bytearray(intact)
        for _ in range(draw.choice((1, 20, 2000))):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        file.write_bytes(damaged)
        hurt = ValueStore(file, LIMIT)
        found = hurt.get_many(values)
        assert all(found[name] == values[name] for name in found)
        hurt.put_many(values)
        hurt.close()
        for leftover in file.parent.glob("*"):
            leftover.unlink()


@pytest.mark.parametrize(
    "content", [b"no database" * 100, b"SQLite format 3\x00" + bytes(5000)], ids=["text", "header"]
)
def test_a_file_that_is_no_store_is_set_aside_and_reported(store: ValueStore, file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    assert store.get_many([b"k"]) == {}
    store.put_many({b"k": b"v"})
    assert store.get_many([b"k"]) == {b"k": b"v"}
    [note] = store.take_events().notes
    assert note == "values.sqlite was damaged or of another layout; it is set aside as values.sqlite.damaged"
    assert file.with_name("values.sqlite.damaged").read_bytes() == content
    assert store.stats().set_aside == len(content)
    store.clear()
    assert store.stats().set_aside == 0


@pytest.mark.parametrize("change", ["PRAGMA user_version = 99", "DROP TABLE entries", "ALTER TABLE entries DROP used"])
def test_a_store_of_another_layout_is_set_aside(file: Path, change: str) -> None:
    first = ValueStore(file, LIMIT)
    first.put_many({b"k": b"v"})
    first.close()
    with sqlite3.connect(file) as connection:
        connection.execute(change)
    connection.close()
    store = ValueStore(file, LIMIT)
    assert store.get_many([b"k"]) == {}
    store.put_many({b"k": b"new"})
    assert store.get_many([b"k"]) == {b"k": b"new"}
    assert len(store.take_events().notes) == 1


def test_a_file_that_another_process_set_aside_is_left_to_its_new_one(file: Path) -> None:
    first = ValueStore(file, LIMIT)
    first.put_many({b"k": b"v"})
    file.rename(file.with_name("elsewhere"))
    second = ValueStore(file, LIMIT)
    second.put_many({b"k": b"w"})
    first._set_aside()
    assert second.get_many([b"k"]) == ValueStore(file, LIMIT).get_many([b"k"]) == {b"k": b"w"}


def test_the_longest_unused_go_first_and_the_file_stays_within_its_limit(file: Path) -> None:
    clock = Clock()
    store = ValueStore(file, LIMIT, clock)
    for start in range(0, 600, 20):
        store.put_many(entries(range(start, start + 20), size=10_000))
        clock.pass_hours(HELD_SECONDS / 3600 + 1)
        assert there(store, range(5)) == [0, 1, 2, 3, 4]  # used all the time
        assert store.stats().bytes <= LIMIT
    assert file.stat().st_size <= LIMIT * 1.1
    left = there(store, range(5, 600))
    assert left == list(range(left[0], 600))
    assert len(left) * 10_000 > LIMIT * 0.7
    assert store.take_events().notes == []


def test_a_scan_over_more_than_there_is_room_for_finds_a_store_full_the_next_time(file: Path) -> None:
    store = ValueStore(file, LIMIT, Clock())
    first = [
        there(store, range(n, n + 50)) or store.put_many(entries(range(n, n + 50), 10_000)) for n in range(0, 800, 50)
    ]
    assert first == [None] * 16
    events = store.take_events()
    assert 400 < events.not_kept < 450
    assert events.notes == ["values.sqlite is full of what was used of late; raise RAG_EVAL_CACHE_MB to keep more"]
    assert 350 < len(there(store, range(800))) < 400


def test_a_lower_limit_shrinks_the_file(file: Path) -> None:
    clock = Clock()
    store = ValueStore(file, LIMIT, clock)
    store.put_many(entries(range(300), size=10_000))
    store.close()
    clock.pass_hours(24)
    smaller = ValueStore(file, 500_000, clock)
    smaller.put_many(entries(range(300, 310), size=10_000))
    smaller.close()
    assert file.stat().st_size < 600_000
    assert there(smaller, range(300, 310)) == list(range(300, 310))


def test_an_entry_larger_than_the_store_is_not_kept(file: Path) -> None:
    store = ValueStore(file, 100_000)
    store.put_many({b"k": bytes(200_000)})
    assert store.get_many([b"k"]) == {}
    assert store.take_events().not_kept == 1


def test_a_limit_of_0_turns_it_off(file: Path) -> None:
    store = ValueStore(file, 0)
    store.put_many({b"k": b"v"})
    assert store.get_many([b"k"]) == {}
    assert not file.parent.exists()
    assert store.take_events().not_kept == 0


def test_a_full_disk_is_said_and_stops_nothing(file: Path) -> None:
    store = ValueStore(file, LIMIT)
    store.put_many(entries(range(10)))
    connection = store._connect()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite then answers as on a full disk
    store.put_many(entries(range(10, 200)))
    store.put_many(entries(range(200, 210)))
    events = store.take_events()
    assert events.not_kept == 200
    assert events.notes == ["values.sqlite cannot be used (database or disk is full); the run goes on without it"]
    assert there(ValueStore(file, LIMIT), range(210)) == list(range(10))


def test_a_folder_that_cannot_be_made_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    store = ValueStore(tmp_path / "taken" / "values.sqlite", LIMIT)
    store.put_many({b"k": b"v"})
    assert store.get_many([b"k"]) == {}
    [note] = store.take_events().notes
    assert note == "values.sqlite cannot be used (File exists); the run goes on without it"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said_and_stops_nothing(file: Path) -> None:
    file.parent.mkdir(mode=0o500)
    store = ValueStore(file, LIMIT)
    store.put_many({b"k": b"v"})
    assert len(store.take_events().notes) == 1


def test_a_file_that_others_are_writing_is_passed_over(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_eval_assets.storage.sqlite_file.BUSY_SECONDS", 0.01)
    store = ValueStore(file, LIMIT)
    store.put_many({b"k": b"v"})
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.put_many({b"l": b"v"})
    assert store.get_many([b"k", b"l"]) == {b"k": b"v"}  # reading waits for nobody
    other.execute("ROLLBACK")
    other.close()
    events = store.take_events()
    assert events.not_kept == 1
    assert events.notes == ["values.sqlite was in use by other processes; some entries were passed over"]
    store.put_many({b"l": b"v"})
    assert store.get_many([b"l"]) == {b"l": b"v"}


def test_processes_that_write_at_once_lose_nothing(file: Path) -> None:
    running = [writer(file, first, first + 300) for first in (0, 300, 150)]
    outputs = [process.communicate(timeout=300)[0] for process in running]
    assert [output.splitlines()[-1] for output in outputs] == ["[]"] * 3
    found = ValueStore(file, LIMIT).get_many(map(key, range(600)))
    assert found == {key(number): bytes([number % 251]) * (10 + number) for number in range(600)}


def test_a_process_that_is_killed_leaves_a_store_that_holds_whole_entries(file: Path) -> None:
    process = writer(file, 0, 1_000_000, limit=100_000_000)
    assert process.stdout is not None
    for _ in range(5):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = ValueStore(file, LIMIT)
    found = there(store, range(100))
    assert found == list(range(100))
    assert store.take_events().damaged == 0
    store.put_many({b"k": b"v"})
    assert store.get_many([b"k"]) == {b"k": b"v"}


def test_a_forked_child_opens_the_file_itself(store: ValueStore, file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, str(file)], check=False, timeout=300)
    assert done.returncode == 0
    assert store.get_many([b"parent", b"child"]) == {b"parent": b"v", b"child": b"w"}


def test_clearing_removes_all_entries_while_others_use_the_store(store: ValueStore, file: Path) -> None:
    other = ValueStore(file, LIMIT)
    other.put_many(entries(range(100), size=5000))
    store.clear()
    assert (store.stats().entries, there(other, range(100))) == (0, [])
    assert file.stat().st_size < 50_000
    other.put_many({b"k": b"v"})
    assert store.get_many([b"k"]) == {b"k": b"v"}


def test_a_damaged_file_can_be_cleared(store: ValueStore, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database" * 100)
    store.clear()
    assert list(file.parent.iterdir()) == []


def test_what_cannot_be_cleared_is_an_error(store: ValueStore, file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.raises(InfrastructureError, match=r"'values\.sqlite' cannot be cleared"):
        store.clear()


def test_the_checksum_is_over_key_and_value(store: ValueStore, file: Path) -> None:
    store.put_many({b"k": b"v"})
    with sqlite3.connect(file) as connection:
        row = connection.execute("SELECT size, digest FROM entries").fetchone()
    assert row == (1, blake2b(b"kv", digest_size=16).digest())
