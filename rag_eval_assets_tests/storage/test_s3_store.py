"""The table store in a bucket: the same behaviour as the local one, and nothing half at a final key."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import boto3
import duckdb
import pyarrow as pa
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage import s3_store
from rag_eval_assets.storage.s3 import make_client
from rag_eval_assets.storage.s3_errors import Fault, S3Error
from rag_eval_assets.storage.s3_names import S3Bucket
from rag_eval_assets.storage.s3_store import S3Store
from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey, data_version

ROOT = Path(__file__).parents[2]
KEY = TableKey("suite", "scores", "2026-03-01", "target")
LATER = TableKey("suite", "scores", "2026-03-02", "target")
ROWS = 1_000
PREFIX = "qa/tables"
MAY = (("s3:GetObject", "/qa/tables/*"), ("s3:PutObject", "/qa/tables/*"), ("s3:ListBucket", ""))


def version(name: str) -> pa.Table:
    return pa.table({"version": [name] * ROWS, "row": range(ROWS)})


@pytest.fixture
def place(reports) -> S3Bucket:
    return S3Bucket(reports.bucket, "eu-central-1", reports.server.url, "path")


@pytest.fixture
def store(reports, place: S3Bucket) -> S3Store:
    return open_store(reports, place)


def open_store(reports, place: S3Bucket) -> S3Store:
    reports.allow(*MAY)
    return S3Store(place, PREFIX, make_client(place, attempts=5), boto3.Session().get_credentials())


def test_rows_columns_and_provenance_come_back(store: S3Store, reports) -> None:
    provenance = Provenance("7", {"corpus": "abc"}, {"scored": 2}, {"name": "ü"})
    stored = store.write(KEY, version("one"), provenance)
    key = f"{PREFIX}/{KEY.path}"
    (content,) = reports.objects().values()
    assert (stored.uri, stored.rows, stored.bytes) == (f"s3://{reports.bucket}/{key}", ROWS, len(content))
    assert stored.data_version == data_version(version("one"))
    assert store.read(KEY).equals(version("one"))
    assert store.read(KEY, ["row"]).schema.names == ["row"]
    assert store.provenance(KEY) == provenance
    assert store.read_with_provenance(KEY) == (version("one"), provenance)


def test_a_table_has_the_same_bytes_as_in_a_local_folder(store: S3Store, reports, tmp_path: Path) -> None:
    local = LocalStore(tmp_path)
    local.write(KEY, version("one"), Provenance("1"))
    store.write(KEY, version("one"), Provenance("1"))
    assert list(reports.objects().values()) == [local.path(KEY).read_bytes()]


def test_run_dates_are_those_of_the_same_table_and_part(store: S3Store) -> None:
    others = [
        LATER,
        KEY,
        TableKey("suite", "scores", "2026-03-03", "target", part="some-run"),
        TableKey("suite", "scores", "2026-03-04", "other"),
        TableKey("suite", "scores_more", "2026-03-05", "target"),
    ]
    assert store.run_dates(KEY) == []
    for key in others:
        store.write(key, version("one"), Provenance("1"))
    assert store.run_dates(KEY) == ["2026-03-01", "2026-03-02"]
    assert store.exists(LATER)
    assert not store.exists(TableKey("suite", "scores", "2026-03-09", "target"))


def test_a_missing_and_a_damaged_table_are_named_with_what_to_do(store: S3Store, reports) -> None:
    with pytest.raises(InfrastructureError, match=r"run_date=2026-03-01/part-0.parquet' is not in the store\. Mat"):
        store.read(KEY)
    reports.server.client().put_object(Bucket=reports.bucket, Key=f"{PREFIX}/{KEY.path}", Body=b"PAR1 no Parquet PAR1")
    for look in (store.read, store.provenance, store.read_with_provenance):
        with pytest.raises(InfrastructureError, match=r"cannot be read \(.*Materialize 'scores' .* again"):
            look(KEY)


def test_a_number_that_is_none_is_refused_before_anything_is_put(store: S3Store, reports) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.write(KEY, pa.table({"value": [float("nan")]}), Provenance("1"))
    assert reports.objects() == {}


def test_a_refusal_names_action_and_object(store: S3Store, reports, place: S3Bucket) -> None:
    store.write(KEY, version("one"), Provenance("1"))
    reports.allow(("s3:GetObject", "/prod/*"))
    other = S3Store(place, PREFIX, make_client(place), boto3.Session().get_credentials())
    for action, look in {"GetObject": other.read, "PutObject": None, "ListBucket": other.run_dates}.items():
        with pytest.raises(S3Error, match=rf"s3:{action} on s3://{reports.bucket}/{PREFIX}/suite") as caught:
            look(KEY) if look else other.write(KEY, version("two"), Provenance("1"))
        assert caught.value.fault is Fault.DENIED
    assert open_store(reports, place).read(KEY).equals(version("one"))


def test_a_read_that_meets_a_replacement_begins_again(store: S3Store, monkeypatch) -> None:
    """A table is read in several requests, and between two of them another process replaces it."""
    store.write(KEY, version("old"), Provenance("1"))
    opened, replaced = s3_store.read_with_metadata, []

    def replaced_meanwhile(file):
        found = opened(file)
        if not replaced:
            replaced.append(store.write(KEY, version("new"), Provenance("2")))
        return found

    monkeypatch.setattr(s3_store, "read_with_metadata", replaced_meanwhile)
    assert store.read_with_provenance(KEY) == (version("new"), Provenance("2"))


def test_a_table_that_never_rests_is_read_by_one_request(store: S3Store, monkeypatch) -> None:
    numbers = iter(range(100))
    store.write(KEY, version("old"), Provenance("old"))
    opened = s3_store.read_with_metadata

    def always_replaced(file):
        found = opened(file)
        name = f"new {next(numbers)}"
        store.write(KEY, version(name), Provenance(name))
        return found

    monkeypatch.setattr(s3_store, "read_with_metadata", always_replaced)
    assert store.read_with_provenance(KEY) == (version("new 0"), Provenance("new 0"))


def test_duckdb_finds_one_version_of_each_date_under_the_glob(store: S3Store, reports) -> None:
    store.write(KEY, version("old"), Provenance("1"))
    store.write(KEY, version("new"), Provenance("2"))
    store.write(LATER, version("later"), Provenance("2"))
    assert seen_by_duckdb(reports) == [("later", "2026-03-02", ROWS), ("new", "2026-03-01", ROWS)]


def seen_by_duckdb(reports) -> list[tuple[object, ...]]:
    """(version, run date, rows) as DuckDB finds them."""
    with duckdb.connect() as connection:
        connection.register_filesystem(ArrowFSWrapper(reports.file_system()))
        query = f"""
            SELECT version, run_date::varchar, count(DISTINCT row)
            FROM 's3://{reports.bucket}/{PREFIX}/*/*/scores/*/*.parquet' GROUP BY ALL ORDER BY ALL
        """
        return connection.sql(query).fetchall()


def test_a_writer_killed_at_any_of_20_moments_leaves_one_whole_version(store: S3Store, reports, monkeypatch) -> None:
    """A process writes one version after the other until it is killed, 20 times; what lies there is always whole."""
    monkeypatch.setenv("RAG_EVAL_TABLES", f"s3://{reports.bucket}/{PREFIX}")
    store.write(KEY, version("first"), Provenance("first"))
    seen, moments = set(), random.Random(20)
    # Forked from one process that has imported everything: a start would cost seconds.
    command = [sys.executable, "-c", FORKS]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        for _ in range(20):
            parent.stdin.write("start\n")
            parent.stdin.flush()
            child = int(parent.stdout.readline())
            time.sleep(moments.uniform(0.0, 0.2))  # it is within its second write, or a few later
            os.kill(child, signal.SIGKILL)
            assert parent.stdout.readline() == "gone\n"
            table, provenance = store.read_with_provenance(KEY)
            assert table.num_rows == ROWS
            assert table.column("version").unique().to_pylist() == [provenance.code_version]
            seen.add(provenance.code_version)
        parent.stdin.close()
    assert list(reports.objects()) == [f"{PREFIX}/{KEY.path}"], "nothing half, and nothing beside it"
    assert len(seen) == 20
    assert len(seen_by_duckdb(reports)) == 1


FORKS = """
import os, sys
import pyarrow as pa
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.tables import open_store
from rag_eval_assets.storage.store import Provenance, TableKey
from rag_eval_assets.suite.load import load_suite

store, number = open_store(Home.from_environment(), load_suite("embedded")), 0
for line in sys.stdin:
    number += 1
    child = os.fork()
    if child == 0:
        key, count = TableKey("suite", "scores", "2026-03-01", "target"), 0
        while True:
            count += 1
            name = f"{number}-{count}"
            store.write(key, pa.table({"version": [name] * 1_000, "row": range(1_000)}), Provenance(name))
            if count == 1:
                print(os.getpid(), flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def test_a_reader_that_looks_all_the_while_never_sees_a_mix(store: S3Store) -> None:
    names = [f"version {number}" for number in range(15)]
    store.write(KEY, version("old"), Provenance("old"))

    def write_all() -> None:
        for name in names:
            store.write(KEY, version(name), Provenance(name))

    writer = threading.Thread(target=write_all)
    writer.start()
    looks = 0
    while writer.is_alive():
        table, provenance = store.read_with_provenance(KEY)
        assert table.column("version").unique().to_pylist() == [provenance.code_version]
        looks += 1
    writer.join()
    assert looks > 0


def test_the_footer_says_which_suite_and_releases_made_it(reports, place: S3Bucket) -> None:
    import pyarrow.parquet as pq

    reports.allow(*MAY)
    made_by = {"suite": "village", "packages": {"torch": "2.13.0"}}
    store = S3Store(place, PREFIX, make_client(place), boto3.Session().get_credentials(), made_by)
    store.write(KEY, version("one"), Provenance("1"))
    (content,) = reports.objects().values()
    assert json.loads(pq.read_schema(pa.BufferReader(content)).metadata[b"rag_eval_made_by"]) == made_by
