"""Batches of tables are mapped in order, lazily, by one worker that is made only where there is something to do."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from rag_eval_assets.compute import Worker, map_batches


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"n": list(range(start, stop))})


@pytest.mark.parametrize("batch_rows", [1, 3, 10, 100])
def test_rows_keep_their_order_in_batches_of_bounded_size(batch_rows: int) -> None:
    made: list[int] = []

    def factory() -> Worker:
        made.append(1)
        return lambda table: table.append_column("rows", pa.array([table.num_rows] * table.num_rows))

    result = pa.concat_tables(map_batches([numbers(0, 7), numbers(7, 7), numbers(7, 20)], factory, batch_rows))
    assert result["n"].to_pylist() == list(range(20))
    assert max(result["rows"].to_pylist()) <= batch_rows
    assert len(made) == 1


def test_tables_are_read_as_their_batches_are_asked_for() -> None:
    read: list[int] = []

    def tables() -> Iterator[pa.Table]:
        for start in (0, 2, 4):
            read.append(start)
            yield numbers(start, start + 2)

    batches = map_batches(tables(), lambda: lambda table: table, 2)
    next(batches)
    assert read == [0]


def test_no_worker_is_made_for_no_rows() -> None:
    def factory() -> Worker:
        raise AssertionError("made")

    assert list(map_batches([numbers(0, 0)], factory, 5)) == []
