"""Which process of this machine is which: an id alone says little, since ids are used again and boots come between."""

from __future__ import annotations

import os
from pathlib import Path

from rag_eval_assets.storage.atomic import process_is_gone

_ENDED = ("Z", "X", "x")
"""States of a process that executes nothing any more: zombie, and dead."""


def boot_id() -> str:
    """Id of the machine's current boot; empty where the system tells none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def process_start(pid: int) -> str:
    """When a process was started, in the system's own unit; `gone` where there is none. Pids are used again.

    A process that has ended but that its parent has not waited for is gone, too: in a container whose first process
    waits for nobody, one whose parent was killed stays listed for ever.
    """
    try:
        # The second field is the command in parentheses and may hold spaces; the state is field 3, the start time is
        # field 22 (proc(5)).
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rsplit(")", 1)[1].split()
        return "gone" if fields[0] in _ENDED else fields[19]
    except FileNotFoundError:
        return _without_proc(pid)
    except (OSError, IndexError):
        return "gone"


def _without_proc(pid: int) -> str:
    if Path("/proc/self").exists():
        return "gone"
    return "gone" if process_is_gone(pid) else "unknown"


def started_at(pid: int) -> float | None:
    """When a process was started, in seconds since 1970; None where there is none.

    Where the system has no /proc, every process that is there counts as started in 1970.
    """
    ticks = process_start(pid)
    if ticks == "gone":
        return None
    if ticks == "unknown":
        return 0.0
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    boot = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
    return boot + int(ticks) / os.sysconf("SC_CLK_TCK")
