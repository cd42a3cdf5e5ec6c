"""Which processes count as being there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_eval_assets.orchestration.processes import process_start, started_at


def test_a_killed_process_that_nobody_waited_for_is_gone() -> None:
    """As in a container whose first process waits for none of the children that it was left with."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        assert process_start(process.pid).isdigit()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and still listed
        os.kill(process.pid, 0)
        assert process_start(process.pid) == "gone"
        assert started_at(process.pid) is None
