"""workspace.yaml, dagster_cloud.yaml and the instance template, each read by the library that it is written for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster_cloud_cli.config.models import DagsterCloudYaml, load_dagster_cloud_yaml
from dagster_k8s.container_context import K8sContainerContext
from pydantic import ValidationError

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "rag_eval_assets" / "orchestration" / "dagster.yaml"
CLOUD = (ROOT / "dagster_cloud.yaml").read_text()
MODULE = "rag_eval_assets.definitions"


@pytest.fixture
def instance(tmp_path: Path) -> Generator[dg.DagsterInstance]:
    """An instance made from the template in a Dagster home of its own."""
    shutil.copy(TEMPLATE, tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        yield made


def test_the_instance_sends_no_usage_reports(instance: dg.DagsterInstance) -> None:
    assert instance.telemetry_enabled is False
    assert instance.nux_enabled is False


def test_a_pool_admits_one_run_at_a_time(instance: dg.DagsterInstance) -> None:
    pools = instance.get_concurrency_config().pool_config
    assert pools.default_pool_limit == 1
    assert pools.pool_granularity is not None
    assert pools.pool_granularity.value == "run"


def test_a_step_claims_the_only_slot_of_the_gpu_pool(instance: dg.DagsterInstance) -> None:
    storage = instance.event_log_storage
    storage.initialize_concurrency_limit_to_default("gpu")
    assert storage.claim_concurrency_slot("gpu", "first-run", "bertscore").is_claimed
    assert not storage.claim_concurrency_slot("gpu", "second-run", "bertscore").is_claimed


def test_two_runs_are_started_at_once(instance: dg.DagsterInstance) -> None:
    run_queue = instance.get_concurrency_config().run_queue_config
    assert run_queue is not None
    assert run_queue.max_concurrent_runs == 2


def test_a_crashed_run_gives_its_slots_back(instance: dg.DagsterInstance) -> None:
    assert instance.run_monitoring_enabled is True
    assert instance.get_settings("run_monitoring")["free_slots_after_run_end_seconds"] == 300
    assert instance.run_monitoring_max_resume_run_attempts == 0


def test_a_crash_is_retried_once_and_a_failed_step_is_not(instance: dg.DagsterInstance) -> None:
    assert instance.run_retries_enabled is True
    assert instance.run_retries_max_retries == 1
    assert instance.run_retries_retry_on_asset_or_op_failure is False


def workspace() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "workspace.yaml").read_text())


def test_the_workspace_names_the_installed_module_and_no_folder() -> None:
    target = {"module_name": MODULE, "location_name": "rag_eval_assets"}
    assert workspace() == {"load_from": [{"python_module": target}]}


def test_the_workspace_the_cloud_file_and_the_project_settings_name_one_code_location() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    (location,) = load_dagster_cloud_yaml(CLOUD).locations
    assert location.code_source is not None
    named = {
        "workspace": tuple(workspace()["load_from"][0]["python_module"].values()),
        "cloud": (location.code_source.module_name, location.location_name),
        "dagster": (tools["dagster"]["module_name"], tools["dagster"]["code_location_name"]),
        "dg": (tools["dg"]["project"]["code_location_target_module"], tools["dg"]["project"]["code_location_name"]),
    }
    assert set(named.values()) == {(MODULE, "rag_eval_assets")}, named


def test_dg_accepts_the_project_settings(tmp_path: Path) -> None:
    shutil.copy(TEMPLATE, tmp_path / "dagster.yaml")
    command = [str(Path(sys.executable).parent / "dg"), "check", "toml"]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "1"}
    checked = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"Found project configuration file: {ROOT / 'pyproject.toml'}" in checked.stdout.replace("\n", "")


@pytest.mark.parametrize("place", [(), ("locations", 0), ("locations", 0, "code_source"), ("locations", 0, "build")])
def test_the_cloud_file_may_hold_only_published_keys(place: tuple[str | int, ...]) -> None:
    document = yaml.safe_load(CLOUD)
    part = document
    for step in place:
        part = part[step]
    part["no_such_key"] = "x"
    with pytest.raises(ValidationError, match="no_such_key"):
        DagsterCloudYaml.model_validate(document)


def container_context() -> dict[str, Any]:
    (location,) = load_dagster_cloud_yaml(CLOUD).locations
    assert location.container_context is not None
    return location.container_context


def test_kubernetes_gives_servers_and_runs_the_variables_the_secret_and_their_own_limits() -> None:
    context = K8sContainerContext.create_from_config(container_context())
    limits = {}
    for part, config in (("server", context.server_k8s_config), ("run", context.run_k8s_config)):
        container = config.container_config
        assert {variable["name"] for variable in container["env"]} == {"RAG_EVAL_HOME", "DAGSTER_DISABLE_TELEMETRY"}
        assert container["env_from"] == [{"secret_ref": {"name": "rag-eval-secrets"}}]
        limits[part] = container["resources"]["limits"]
    assert limits == {"server": {"memory": "1Gi"}, "run": {"memory": "8Gi"}}


def test_kubernetes_refuses_an_unknown_key_in_the_container_context() -> None:
    context = container_context()
    context["k8s"]["no_such_key"] = "x"
    with pytest.raises(dg.DagsterInvalidConfigError, match="no_such_key"):
        K8sContainerContext.create_from_config(context)


def test_no_variable_of_the_container_context_is_taken_from_the_machine_that_parses_it() -> None:
    assert all("=" in variable for variable in container_context()["k8s"]["env_vars"])
