"""The SQLite file under a value store: how it is opened, its layout, and what its error codes mean here."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BUSY_SECONDS = 10.0
"""How long another process that is writing is waited for."""

OTHER_LAYOUT = sqlite3.SQLITE_ERROR
UNUSABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, OTHER_LAYOUT)
"""Codes of a file that is damaged or of another layout."""

TAKEN = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Codes that say that others are using the file."""

_LAYOUT = 1
"""`user_version` of the file."""

# The value comes last, so that a look at the other columns reads no pages of large values.
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries "
    "(key BLOB PRIMARY KEY, used INTEGER NOT NULL, size INTEGER NOT NULL, digest BLOB NOT NULL, value BLOB NOT NULL)"
)


def open_file(file: Path) -> sqlite3.Connection:
    """A connection to `file`, which is made where there is none; its folder is there.

    Raises:
        sqlite3.Error: it is no such file or cannot be used; `sqlite_errorcode` says why.
    """
    connection = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = bytes  # the layout has no text; damage may put some there, and any bytes
    try:
        layout = pragma(connection, "user_version")
        if layout not in (0, _LAYOUT):
            raise _of_other_layout()
        if layout == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_log(connection)
        # The log is flushed before it is merged: a power cut loses the newest entries, never the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        if layout == 0:
            with transaction(connection):
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {_LAYOUT}")
    except BaseException:
        connection.close()
        raise
    return connection


def _of_other_layout() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("it has another layout")
    error.sqlite_errorcode = OTHER_LAYOUT
    return error


def _use_log(connection: sqlite3.Connection) -> None:
    """Write-ahead logging: readers never wait. Changing to it fails at once where another process is just doing it."""
    for wait in (0.01, 0.05, 0.2, 1.0):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in TAKEN:
                raise
            time.sleep(wait)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All or nothing, also where the process is interrupted."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite has rolled back by itself
            connection.rollback()
        raise


def delete_all(connection: sqlite3.Connection) -> bool:
    """Remove all entries and give their room back to the disk; True."""
    connection.execute("DELETE FROM entries")
    give_back(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return True


def give_back(connection: sqlite3.Connection) -> None:
    """Shrink the file by what holds nothing; outside of a transaction."""
    # `execute` takes one step of it, and each step frees one page.
    connection.executescript("PRAGMA incremental_vacuum")


def count(connection: sqlite3.Connection) -> tuple[int, int]:
    """Entries, and bytes that they take."""
    return connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0], used_bytes(connection)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages = pragma(connection, "page_count") - pragma(connection, "freelist_count")
    return pages * pragma(connection, "page_size")


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """The value of an integer setting or measure of the file."""
    value: Any = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return int(value)
