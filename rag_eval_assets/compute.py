"""The compute seam: batches of tables mapped by workers, in order. Here within this process; elsewhere over others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Worker = Callable[[pa.Table], pa.Table]
"""Makes a table from a batch; the rows that it gives for a row depend on that row alone."""


def map_batches(
    tables: Iterable[pa.Table], worker_factory: Callable[[], Worker], batch_rows: int
) -> Iterator[pa.Table]:
    """What a worker makes of each batch of at most `batch_rows` rows, in the order of the rows.

    Args:
        tables: tables of one schema; they are read as batches are asked for, so that memory stays flat.
        worker_factory: makes the worker where it will compute, since models are loaded there. It is called once, and
            only where there is a row.
        batch_rows: most rows that a worker is given.
    """
    worker: Worker | None = None
    for table in tables:
        for start in range(0, table.num_rows, batch_rows):
            worker = worker or worker_factory()
            yield worker(table.slice(start, batch_rows))
