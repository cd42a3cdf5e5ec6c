"""For the PYTHONPATH of a live instance: what of it differs from a user's, where Dagster has no setting for it."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

if "dagster._daemon" in sys.orig_argv:
    # How often the daemon looks for backfills and changes.
    from dagster._daemon import controller, sensor

    controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 2  # 30
    sensor.MIN_INTERVAL_LOOP_TIME = 1  # 5

if "grpc" in sys.orig_argv:
    # The code server starts a process per run, which would spend three seconds on imports: here they are forked from
    # one that has done that. Suites are read, and the code location is loaded, by each run as ever.
    _ready = ["dagster._cli.api", "dagster._grpc.impl", "dagster._core.storage.sqlite_storage"]
    _ready += ["rag_eval_assets.orchestration.build", "rag_eval_assets.report.write", "matplotlib.figure"]
    _get = multiprocessing.get_context

    def _get_context(method: str | None = None) -> Any:
        if method != "spawn":
            return _get(method)
        context = _get("forkserver")
        context.set_forkserver_preload(_ready)
        return context

    multiprocessing.get_context = _get_context
