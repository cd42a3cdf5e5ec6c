"""Replacing a table is all or nothing: whatever kills the writer, readers find the old version or the new one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.atomic import process_is_gone, replace_file
from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey

ROOT = Path(__file__).parents[2]
KEY = TableKey("suite", "scores", "2026-03-01", "target")
ROWS = 5_000  # three row groups

WRITER = """
import os, pathlib, signal, sys
import pyarrow as pa, pyarrow.parquet as pq
from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey

root, moment = sys.argv[1:]
groups = 0

def die(*_args, **_kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def write_and_die(self, *args, **kwargs):
    global groups
    groups += 1
    if groups == int(moment[-1]):
        die()
    write(self, *args, **kwargs)

def rename_and_die(*args):
    rename(*args)
    die()

write, rename = pq.ParquetWriter.write_table, os.replace
if moment == "before anything is written":
    pathlib.Path.mkdir = die
elif moment.startswith("before row group"):
    pq.ParquetWriter.write_table = write_and_die
elif moment == "before the footer":
    pq.ParquetWriter.close = die
elif moment == "before the flush":
    os.fsync = die
elif moment == "before the rename":
    os.replace = die
elif moment == "after the rename":
    os.replace = rename_and_die
table = pa.table({"version": ["new"] * 5_000, "row": range(5_000)})
LocalStore(pathlib.Path(root)).write(TableKey("suite", "scores", "2026-03-01", "target"), table, Provenance("2"))
"""

BEFORE = [
    "before anything is written",
    "before row group 1",
    "before row group 2",
    "before the footer",
    "before the flush",
    "before the rename",
]


def version(name: str) -> pa.Table:
    return pa.table({"version": [name] * ROWS, "row": range(ROWS)})


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    made = LocalStore(tmp_path / "tables")
    made.write(KEY, version("old"), Provenance("1"))
    return made


def killed_while_writing(store: LocalStore, moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", WRITER, str(store.root), moment], cwd=ROOT, timeout=300, check=False)
    assert done.returncode == -9


def seen_by_duckdb(root: Path) -> list[tuple[object, ...]]:
    """(version, run date, rows) as DuckDB finds them under `root`."""
    with duckdb.connect() as connection:
        query = "select version, run_date::varchar, count(distinct row) from {} group by all"
        source = f"read_parquet('{root}/**/*.parquet', hive_partitioning = true)"
        return connection.execute(query.format(source)).fetchall()


def leftovers(store: LocalStore) -> list[str]:
    return sorted(path.name for path in store.path(KEY).parent.iterdir() if path.name != "part-0.parquet")


@pytest.mark.parametrize("moment", [*BEFORE, "after the rename"])
def test_a_writer_killed_at_any_moment_leaves_one_whole_version(store: LocalStore, moment: str) -> None:
    killed_while_writing(store, moment)
    name, code = ("old", "1") if moment in BEFORE else ("new", "2")
    assert store.read(KEY).equals(version(name))
    assert store.provenance(KEY).code_version == code
    assert seen_by_duckdb(store.root) == [(name, "2026-03-01", ROWS)]
    # What the killed writer left is gone with the next write, and only then.
    assert len(leftovers(store)) == (1 if moment in BEFORE[1:] else 0)
    store.write(KEY, version("newest"), Provenance("3"))
    assert leftovers(store) == []
    assert seen_by_duckdb(store.root) == [("newest", "2026-03-01", ROWS)]


def test_a_first_write_that_is_killed_leaves_no_table(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    killed_while_writing(store, "before the rename")
    assert not store.exists(KEY)
    assert store.run_dates(KEY) == []
    assert list(tmp_path.glob("**/*.parquet")) == []


def test_a_reader_that_looks_all_the_while_never_sees_a_mix(store: LocalStore) -> None:
    names = [f"version {number}" for number in range(40)]

    def write_all() -> None:
        for name in names:
            store.write(KEY, version(name), Provenance(name))

    writer = threading.Thread(target=write_all)
    writer.start()
    looks = 0
    while writer.is_alive():
        seen = store.read(KEY)
        assert seen.num_rows == ROWS
        assert len(seen.column("version").unique()) == 1
        looks += 1
    writer.join()
    assert looks > 0
    assert seen_by_duckdb(store.root) == [(names[-1], "2026-03-01", ROWS)]


def test_only_leftovers_of_dead_processes_and_of_the_same_file_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert process_is_gone(dead.pid)
    alive = os.getppid()
    kept = [f".t.json.{alive}.abc.tmp", f".other.json.{dead.pid}.abc.tmp", ".t.json.notes.tmp"]
    for name in [*kept, f".t.json.{dead.pid}.abc.tmp", f".t.json.{dead.pid}.def.tmp"]:
        (tmp_path / name).touch()
    replace_file(tmp_path / "t.json", lambda path: path.write_text("{}") and None)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "t.json"])


def test_an_exception_while_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    final = tmp_path / "t.json"
    final.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("not JSON")

    with pytest.raises(ValueError, match="not JSON"):
        replace_file(final, fail)
    assert final.read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


@pytest.mark.parametrize("place", ["a file/t.json", "x" * 300 + "/t.json", "x" * 300, "folder"])
def test_a_place_that_cannot_be_written_is_an_infrastructure_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(InfrastructureError, match=r"cannot write '.*' \(.+\)"):
        replace_file(tmp_path / place, lambda path: path.write_text("{}") and None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a file", "folder"]


def test_a_folder_without_permission_is_an_infrastructure_error() -> None:
    # /proc takes no new entries from anybody, whoever runs these tests.
    with pytest.raises(InfrastructureError, match=r"cannot write 't\.json' \("):
        replace_file(Path("/proc/tables/t.json"), lambda path: path.write_text("{}") and None)


def test_a_full_disk_is_an_infrastructure_error_and_keeps_the_old_table(store: LocalStore) -> None:
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))\n"
    command = [sys.executable, "-c", limit + WRITER, str(store.root), "never"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert "InfrastructureError: cannot write 'part-0.parquet' (" in done.stderr.splitlines()[-1]
    assert store.read(KEY).equals(version("old"))
    assert leftovers(store) == []
