"""Dagster's capture of what steps print, with helper processes that a Ctrl-C at the terminal does not reach."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from typing import Any

import dagster as dg

# Public, but under no public name: this is the path that Dagster's documentation gives for `dagster.yaml`.
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager


class SteadyLogManager(LocalComputeLogManager):
    """Dagster's own manager of compute logs in local files; `dagster.yaml` of the instance names it.

    A terminal sends SIGINT to every process of a command. The two helpers that Dagster starts per stream would die of
    it with a traceback on the screen. Here they inherit a mask that blocks it: Dagster ends them after the step, and
    where it is killed itself, they end by themselves.
    """

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {"home": dg.StringSource}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> "SteadyLogManager":
        return cls(base_dir=str(Path(config_value["home"]) / "storage"), inst_data=inst_data)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[Any]:
        with ExitStack() as stack:
            before = pthread_sigmask(SIG_BLOCK, {SIGINT})
            try:
                context = stack.enter_context(super().capture_logs(log_key))
            finally:
                pthread_sigmask(SIG_SETMASK, before)  # one that came meanwhile is delivered now
            yield context
