"""For the PYTHONPATH: Dagster has no setting for how often its daemon looks for backfills and changes."""

from __future__ import annotations

import sys

if "dagster._daemon" in sys.orig_argv:
    from dagster._daemon import controller, sensor

    controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 2  # 30
    sensor.MIN_INTERVAL_LOOP_TIME = 1  # 5
