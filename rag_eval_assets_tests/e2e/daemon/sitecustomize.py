"""On the PYTHONPATH of `test_live`: Dagster's daemon looks for backfills every 30 seconds and has no setting for it."""

from __future__ import annotations

import sys

if "dagster._daemon" in sys.orig_argv:
    from dagster._daemon import controller

    controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 2
