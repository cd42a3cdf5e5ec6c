"""Where a step runs on Kubernetes: the step job that dagster-k8s makes of an asset's own tags."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from dagster_k8s.job import (
    DagsterK8sJobConfig,
    UserDefinedDagsterK8sConfig,
    construct_dagster_k8s_job,
    get_user_defined_k8s_config,
)

from rag_eval_assets.orchestration.build import build_definitions


@pytest.fixture(scope="module")
def steps(shared_place) -> dict[str, Any]:
    """The Kubernetes job of each step of a suite with one target, as plain values."""
    defs = build_definitions([shared_place.suite()])
    made: dict[str, Any] = {}
    for key in defs.resolve_asset_graph().get_all_asset_keys():
        op_tags = defs.resolve_assets_def(key).op.tags
        config: UserDefinedDagsterK8sConfig = get_user_defined_k8s_config(op_tags)
        job = construct_dagster_k8s_job(
            job_config=DagsterK8sJobConfig(job_image="registry.example/rag-eval:1", dagster_home="/dagster"),
            args=["dagster", "api", "execute_step"],
            job_name="step",
            pod_name="step",
            component="step_worker",
            user_defined_k8s_config=config,
        )
        made[key.path[-1]] = job.to_dict()["spec"]["template"]["spec"]
    return made


@pytest.mark.parametrize("name", ["bertscore", "sentence_cosine"])
def test_a_scorer_runs_on_a_node_with_a_gpu(name: str, steps: dict[str, Any]) -> None:
    pod = steps[name]
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert pod["node_selector"] == {"rag-eval/gpu": "true"}
    (toleration,) = pod["tolerations"]
    assert (toleration["key"], toleration["operator"], toleration["effect"]) == (
        "nvidia.com/gpu",
        "Exists",
        "NoSchedule",
    )


@pytest.mark.parametrize("name", ["eval_examples", "generated_answers", "eval_report"])
def test_other_steps_leave_the_gpus_alone(name: str, steps: dict[str, Any]) -> None:
    pod = steps[name]
    assert not any(pod["containers"][0]["resources"].values())
    assert not pod.get("node_selector")
    assert not pod.get("tolerations")


def test_the_tags_survive_the_definitions_as_dagster_stores_them(shared_place) -> None:
    """Dagster keeps op tags as strings; the Ray one must still say one GPU."""
    defs = build_definitions([shared_place.suite()])
    tags = defs.resolve_assets_def(dg.AssetKey(["tiny", "pipeline", "bertscore"])).op.tags
    assert tags["dagster-ray/config"] in ('{"num_gpus": 1}', '{"num_gpus":1}')
