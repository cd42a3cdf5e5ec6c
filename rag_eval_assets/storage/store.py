"""The table store: one Parquet file per suite, target, table and run date, replaced as a whole or not at all.

A reader, DuckDB's glob included, sees the old version or the new one and never a mix: a table is written to a temporary
file in the same folder, flushed to the disk, and renamed over the final name. `s3_store` is the same store in a bucket.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from rag_eval_assets.canonical import canonical_json
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.atomic import replace_file
from rag_eval_assets.storage.parquet import read_metadata, read_parquet, read_with_metadata, write_parquet

FOOTER_KEY = "rag_eval"
"""Key of the Parquet footer that holds the provenance, as JSON."""

MADE_BY_KEY = "rag_eval_made_by"
"""Key of the Parquet footer that says which suite and which releases made the table, as JSON."""

_HASH_ROWS = 1_000


@dataclass(frozen=True)
class TableKey:
    """Which table.

    Attributes:
        suite: the suite's slug, `<slug>~sample` for limited runs.
        table: name of the table.
        run_date: the partition, YYYY-MM-DD.
        target: the target's slug; None for tables that all targets share.
        part: name of the file; only the history has more than one in a partition.
    """

    suite: str
    table: str
    run_date: str
    target: str | None = None
    part: str = "part-0"

    @property
    def path(self) -> str:
        """Place of the table relative to the store's root."""
        parts = [self.suite, *([self.target] if self.target else []), self.table, f"run_date={self.run_date}"]
        return "/".join([*parts, f"{self.part}.parquet"])


@dataclass(frozen=True)
class Provenance:
    """What a table was made from; stored in the Parquet footer. Holds nothing that differs between equal runs.

    Attributes:
        code_version: version of the function that made it.
        inputs: table name to data version of what was read.
        counts: rows by status.
        facts: anything else a later stage needs, as JSON.
    """

    code_version: str
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class StoredTable:
    """A table that has been written: where, how large, and the hash of its rows."""

    uri: str
    rows: int
    bytes: int
    data_version: str


class TableStore(Protocol):
    """Reads and writes the tables between the stages."""

    def write(self, key: TableKey, table: pa.Table, provenance: Provenance) -> StoredTable:
        """Replace the table of `key` atomically."""
        ...

    def read(self, key: TableKey, columns: Sequence[str] | None = None) -> pa.Table:
        """The table of `key`, or those columns of it; raises InfrastructureError naming the key where there is none."""
        ...

    def provenance(self, key: TableKey) -> Provenance:
        """The provenance of the table of `key`; raises InfrastructureError where there is none."""
        ...

    def read_with_provenance(self, key: TableKey) -> tuple[pa.Table, Provenance]:
        """Both of one and the same version, even where the table is being replaced; raises as `read` does."""
        ...

    def exists(self, key: TableKey) -> bool:
        """Whether there is a table of `key`."""
        ...

    def run_dates(self, key: TableKey) -> list[str]:
        """The run dates for which the table of `key` is there, oldest first, whatever `key.run_date` is."""
        ...


class LocalStore:
    """A table store in a local folder.

    Args:
        root: the folder.
        made_by: what the footers say of suite and releases.
    """

    def __init__(self, root: Path, made_by: Mapping[str, Any] | None = None) -> None:
        self.root = root
        self._made_by = made_by

    def path(self, key: TableKey) -> Path:
        """The file of `key`."""
        return self.root / key.path

    def write(self, key: TableKey, table: pa.Table, provenance: Provenance) -> StoredTable:
        """Replace the table of `key` atomically."""
        final = self.path(key)
        version = data_version(table)  # first: it refuses what must not be written, such as NaN
        footer = footer_of(provenance, self._made_by)
        replace_file(final, lambda temporary: write_parquet(temporary, table, footer))
        return StoredTable(str(final), table.num_rows, final.stat().st_size, version)

    def read(self, key: TableKey, columns: Sequence[str] | None = None) -> pa.Table:
        """The table of `key`, or those columns of it; raises InfrastructureError naming the key where there is none."""
        path = self._existing(key)
        try:
            return read_parquet(path, columns)
        except (OSError, pa.ArrowException) as error:
            raise damaged(key, error) from error

    def provenance(self, key: TableKey) -> Provenance:
        """The provenance of the table of `key`; raises InfrastructureError where there is none."""
        path = self._existing(key)
        try:
            return provenance_of(read_metadata(path))
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise damaged(key, error) from error

    def read_with_provenance(self, key: TableKey) -> tuple[pa.Table, Provenance]:
        """Both of one and the same version, even where the table is being replaced; raises as `read` does."""
        path = self._existing(key)
        try:
            with path.open("rb") as opened:
                table, footer = read_with_metadata(opened)
            return table, provenance_of(footer)
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise damaged(key, error) from error

    def exists(self, key: TableKey) -> bool:
        """Whether there is a table of `key`."""
        return self.path(key).is_file()

    def run_dates(self, key: TableKey) -> list[str]:
        """The run dates for which the table of `key` is there, oldest first, whatever `key.run_date` is."""
        tables = self.path(key).parent.parent.glob(f"run_date=*/{key.part}.parquet")
        return sorted(path.parent.name.removeprefix("run_date=") for path in tables)

    def _existing(self, key: TableKey) -> Path:
        path = self.path(key)
        if not path.is_file():
            raise missing(key)
        return path


def footer_of(provenance: Provenance, made_by: Mapping[str, Any] | None) -> dict[str, str]:
    """What stands in a table's footer; raises ValueError where a number is not finite."""
    entries = {FOOTER_KEY: asdict(provenance), **({MADE_BY_KEY: dict(made_by)} if made_by else {})}
    return {name: json.dumps(value, sort_keys=True, allow_nan=False) for name, value in entries.items()}


def provenance_of(footer: Mapping[str, str]) -> Provenance:
    """The provenance in a footer; raises KeyError, TypeError or ValueError where there is none."""
    return Provenance(**json.loads(footer[FOOTER_KEY]))


def made_by_of(path: Path) -> Mapping[str, Any]:
    """What the footer of a local table says of suite and releases; empty where it says nothing or cannot be read."""
    try:
        found: Any = json.loads(read_metadata(path)[MADE_BY_KEY])
    except (OSError, pa.ArrowException, KeyError, ValueError):
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def missing(key: TableKey) -> InfrastructureError:
    """What to say where there is no table of `key`."""
    return InfrastructureError(
        f"table {key.path!r} is not in the store", fix=f"Materialize {key.table!r} for {key.run_date} first"
    )


def damaged(key: TableKey, error: Exception) -> InfrastructureError:
    """What to say where the table of `key` cannot be read."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return InfrastructureError(
        f"table {key.path!r} cannot be read ({reason})", fix=f"Materialize {key.table!r} for {key.run_date} again"
    )


def data_version(table: pa.Table) -> str:
    """SHA-256 over the schema's names and the rows as canonical JSON: equal content, equal version, however stored."""
    digest = hashlib.sha256(canonical_json(table.schema.names))
    for row in _rows(table):
        digest.update(canonical_json(row))
        digest.update(b"\n")
    return digest.hexdigest()


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_HASH_ROWS):
        for row in batch.to_pylist():
            yield {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
