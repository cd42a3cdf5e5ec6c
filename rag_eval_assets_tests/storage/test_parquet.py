"""The one form of Parquet: same rows, same bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.storage.parquet import ROW_GROUP_ROWS, read_metadata, read_parquet, write_parquet

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False, metadata={"description": "Id."}),
        pa.field("score", pa.float64()),
        pa.field("passages", pa.list_(pa.struct([pa.field("text", pa.string())]))),
    ]
)


@pytest.fixture
def table() -> pa.Table:
    rows = [{"id": f"e{n}", "score": None if n % 7 == 0 else n / 3, "passages": [{"text": "x" * n}]} for n in range(50)]
    return pa.Table.from_pylist(rows * 100, schema=SCHEMA)


def test_rows_schema_and_footer_come_back(tmp_path, table: pa.Table) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(path, table, {"b": "2", "a": "ä"})
    found = read_parquet(path)
    assert found.equals(table)
    assert found.schema.field("id").equals(SCHEMA.field("id"), check_metadata=True)
    assert read_metadata(path) == {"a": "ä", "b": "2"}


def test_neither_chunks_nor_the_order_of_the_footer_change_the_bytes(tmp_path, table: pa.Table) -> None:
    chunked = pa.concat_tables([table.slice(0, 3), table.slice(3, 2_500), table.slice(2_503)])
    marked = chunked.replace_schema_metadata({"pandas": "something"})
    write_parquet(tmp_path / "a", table, {"x": "1", "y": "2"})
    write_parquet(tmp_path / "b", marked, {"y": "2", "x": "1"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_row_groups_are_bounded(tmp_path, table: pa.Table) -> None:
    write_parquet(tmp_path / "t", table, {})
    groups = pq.read_metadata(tmp_path / "t")
    sizes = [groups.row_group(n).num_rows for n in range(groups.num_row_groups)]
    assert sizes == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 1_000]


def test_an_empty_table_keeps_its_schema(tmp_path) -> None:
    write_parquet(tmp_path / "t", SCHEMA.empty_table(), {"a": "1"})
    assert read_parquet(tmp_path / "t").schema.equals(SCHEMA)
    assert read_metadata(tmp_path / "t") == {"a": "1"}
