"""The table store: where a table lies, what it says of itself, and the version of its content."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey, data_version

KEY = TableKey("suite", "scores", "2026-03-01", "target")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False, metadata={"description": "Id."}),
        pa.field("value", pa.float64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("passages", pa.list_(pa.struct([pa.field("text", pa.string()), pa.field("score", pa.float64())]))),
    ]
)
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "value": 0.1,
        "at": NOON,
        "passages": [{"text": "ü😀\u2028", "score": 0.5}, {"text": None, "score": None}],
    },
    {"id": "b", "value": None, "at": None, "passages": []},
    {"id": "c", "value": -0.25, "at": NOON, "passages": None},
]


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "tables")


def test_a_table_lies_under_suite_target_table_and_run_date(store: LocalStore) -> None:
    stored = store.write(KEY, table(), Provenance("1"))
    place = store.root / "suite" / "target" / "scores" / "run_date=2026-03-01" / "part-0.parquet"
    assert (stored.uri, stored.rows, stored.bytes) == (str(place), 3, place.stat().st_size)
    shared = replace(KEY, target=None, suite="suite~sample", part="some-run")
    assert shared.path == "suite~sample/scores/run_date=2026-03-01/some-run.parquet"


def test_rows_and_provenance_come_back(store: LocalStore) -> None:
    provenance = Provenance(
        "7", {"corpus": "abc"}, {"scored": 2, "error": 1}, {"name": "ü", "nested": {"a": [1, None]}}
    )
    stored = store.write(KEY, table(), provenance)
    assert store.exists(KEY)
    assert store.read(KEY).equals(table())
    assert store.read(KEY).schema.field("id").metadata == {b"description": b"Id."}
    assert store.provenance(KEY) == provenance
    assert stored.data_version == data_version(table()) == data_version(store.read(KEY))


def test_equal_tables_give_equal_bytes_wherever_they_are_written(tmp_path: Path) -> None:
    first, second = LocalStore(tmp_path / "a"), LocalStore(tmp_path / "b")
    first.write(KEY, table(), Provenance("1", {"x": "1", "y": "2"}))
    chunked = pa.concat_tables([table().slice(0, 1), table().slice(1)])
    second.write(KEY, table([{"id": "old"}]), Provenance("0"))
    second.write(KEY, chunked, Provenance("1", {"y": "2", "x": "1"}))
    assert first.path(KEY).read_bytes() == second.path(KEY).read_bytes()


def test_another_provenance_or_cell_gives_other_bytes(store: LocalStore) -> None:
    contents: set[bytes] = set()
    for rows, provenance in ((ROWS, Provenance("1")), (ROWS, Provenance("2")), (ROWS[:2], Provenance("1"))):
        store.write(KEY, table(rows), provenance)
        contents.add(store.path(KEY).read_bytes())
    assert len(contents) == 3


def test_the_data_version_is_of_the_content_and_not_of_its_form(tmp_path: Path) -> None:
    plain = data_version(table())
    chunked = pa.concat_tables([table().slice(0, 2), table().slice(2)])
    encoded = table().set_column(0, "id", table().column("id").dictionary_encode())
    view = table().set_column(0, "id", table().column("id").cast(pa.string_view()))
    assert [data_version(form) for form in (chunked, encoded, view)] == [plain] * 3
    for number, options in enumerate(({"compression": "gzip"}, {"use_dictionary": False}, {"row_group_size": 1})):
        pq.write_table(table(), tmp_path / f"{number}.parquet", **options)
        assert data_version(pq.read_table(tmp_path / f"{number}.parquet")) == plain


@pytest.mark.parametrize(
    "change",
    [
        {"id": "A"},
        {"value": 0.1 + 1e-17 * 2},
        {"value": None},
        {"at": NOON + dt.timedelta(microseconds=1)},
        {"passages": None},
        {"passages": []},
        {"passages": [{"text": "ü😀\u2028", "score": 0.5}, {"text": "", "score": None}]},
    ],
)
def test_the_data_version_sees_every_cell(change: dict[str, Any]) -> None:
    changed = table([{**ROWS[0], **change}, *ROWS[1:]])
    assert changed.equals(table()) == (data_version(changed) == data_version(table()))
    assert not changed.equals(table())


def test_the_data_version_sees_the_order_of_rows_and_the_names_of_columns() -> None:
    names = ["id", "value", "time", "passages"]
    others = [
        table(ROWS[::-1]),
        table(ROWS[:2]),
        table([]),
        table().rename_columns(names),
        table().drop_columns(["at"]),
    ]
    versions = {data_version(each) for each in (table(), *others)}
    assert len(versions) == 1 + len(others)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused_before_anything_is_written(store: LocalStore, number: float) -> None:
    store.write(KEY, table(), Provenance("1"))
    with pytest.raises(ValueError, match="JSON"):
        store.write(KEY, table([{"id": "a", "value": number}]), Provenance("1"))
    with pytest.raises(ValueError, match="JSON"):
        store.write(KEY, table(), Provenance("1", facts={"mean": number}))
    assert store.read(KEY).equals(table())


def test_a_missing_table_is_named_with_what_to_do(store: LocalStore) -> None:
    message = (
        "table 'suite/target/scores/run_date=2026-03-01/part-0.parquet' is not in the store. "
        "Materialize 'scores' for 2026-03-01 first"
    )
    for look in (store.read, store.provenance):
        with pytest.raises(InfrastructureError) as caught:
            look(KEY)
        assert str(caught.value) == message
    assert not store.exists(KEY)


@pytest.mark.parametrize("content", [b"", b"not parquet", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_damaged_table_is_named_with_what_to_do(store: LocalStore, content: bytes) -> None:
    store.write(KEY, table(), Provenance("1"))
    store.path(KEY).write_bytes(content)
    for look in (store.read, store.provenance):
        with pytest.raises(
            InfrastructureError, match=r"table 'suite/.*' cannot be read \(.*Materialize 'scores' .* again"
        ):
            look(KEY)


def test_a_table_that_another_program_wrote_has_no_provenance(store: LocalStore) -> None:
    store.path(KEY).parent.mkdir(parents=True)
    pq.write_table(table(), store.path(KEY))
    assert store.read(KEY).equals(table())
    with pytest.raises(InfrastructureError, match="cannot be read"):
        store.provenance(KEY)


def test_run_dates_are_those_of_the_same_table_and_part_oldest_first(store: LocalStore) -> None:
    assert store.run_dates(KEY) == []
    for day in ("2026-03-10", "2026-02-28", "2026-03-01"):
        store.write(replace(KEY, run_date=day), table(), Provenance("1"))
    for other in (
        replace(KEY, run_date="2026-01-01", part="other"),
        replace(KEY, run_date="2026-01-02", target="other"),
        replace(KEY, run_date="2026-01-03", table="other"),
        replace(KEY, run_date="2026-01-04", suite="suite~sample"),
        replace(KEY, run_date="2026-01-05", target=None),
    ):
        store.write(other, table(), Provenance("1"))
    (store.root / "suite" / "target" / "scores" / "run_date=2026-04-01").mkdir()
    assert store.run_dates(KEY) == ["2026-02-28", "2026-03-01", "2026-03-10"]
    assert store.run_dates(replace(KEY, run_date="1999-01-01")) == store.run_dates(KEY)
