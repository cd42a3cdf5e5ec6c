"""Dagster's SQLite storages, without compiling the same few statements anew for every event of every run."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

STORAGES = ("event_log.sqlite.sqlite_event_log", "runs.sqlite.sqlite_run_storage")


def keep_engines() -> None:
    """Let the storages of this process have one SQLAlchemy engine per database, where Dagster makes one per connection.

    An engine holds no connection here (`NullPool`), only the statements that it has compiled; they are a quarter of a
    small run's time.
    """
    for name in STORAGES:
        storage: Any = import_module(f"dagster._core.storage.{name}")
        storage.create_engine = _keeping(storage.create_engine)


def _keeping(create_engine: Any) -> Any:
    @cache
    def kept(url: str, options: tuple[tuple[str, Any], ...], connect: tuple[tuple[str, Any], ...]) -> Any:
        return create_engine(url, **dict(options), connect_args=dict(connect))

    def create(url: str, connect_args: dict[str, Any] | None = None, **options: Any) -> Any:
        return kept(url, tuple(options.items()), tuple((connect_args or {}).items()))

    return create
