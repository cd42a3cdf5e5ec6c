"""Where the steps run: the executor, the pool that limits heavy steps, and the tags that place them on a cluster."""

from __future__ import annotations

import os
from typing import Any

import dagster as dg

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.settings import Settings

GPU_POOL = "gpu"
"""Heavy steps take a slot of this pool; the instance template allows one at a time."""

GPU_OP_TAGS: dict[str, Any] = {
    "dagster-k8s/config": {
        "container_config": {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
        "pod_spec_config": {
            "node_selector": {"rag-eval/gpu": "true"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
    "dagster-ray/config": {"num_gpus": 1},
}
"""Op tags of heavy steps. They act under a step executor only: the k8s one reads the first, dagster-ray the second."""

EXECUTORS = ("in_process", "multiprocess", "k8s")


def worker_pid() -> int:
    """Id of the process that executes a run, asked in one of the run's steps."""
    return os.getppid() if os.environ.get("RAG_EVAL_EXECUTOR") == "multiprocess" else os.getpid()


def executor() -> dg.ExecutorDefinition:
    """The executor that `RAG_EVAL_EXECUTOR` names; by default `in_process`, since a process costs seconds of imports.

    Raises:
        ConfigurationError: the name is unknown, or `k8s` is asked for while tables lie in a local folder.
    """
    name = os.environ.get("RAG_EVAL_EXECUTOR") or EXECUTORS[0]
    if name == "in_process":
        return dg.in_process_executor
    if name == "multiprocess":
        return dg.multiprocess_executor
    if name == "k8s":
        return _kubernetes()
    raise ConfigurationError(f"RAG_EVAL_EXECUTOR is {name!r}", fix=f"Use one of {', '.join(EXECUTORS)}")


def _kubernetes() -> dg.ExecutorDefinition:
    if Settings.from_environment().tables is None:
        raise ConfigurationError(
            "RAG_EVAL_EXECUTOR is 'k8s', but the tables lie in a local folder, which pods do not share",
            fix="Put the tables into a bucket with RAG_EVAL_TABLES, or use 'in_process' or 'multiprocess'",
        )
    try:
        from dagster_k8s import k8s_job_executor
    except ImportError as error:
        raise ConfigurationError(
            "RAG_EVAL_EXECUTOR is 'k8s', but dagster-k8s is not installed", fix="pip install dagster-k8s==0.29.27"
        ) from error
    return k8s_job_executor
