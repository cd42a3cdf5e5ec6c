"""What Dagster loads: keys, groups, partitions, columns, lineage, pools and tags of the assets."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.orchestration.lineage import REPORT_POINTER
from rag_eval_assets.suite.load import load_suite, load_suites
from rag_eval_assets.tables import TABLES, TableSpec

ROOT = Path(__file__).parents[2]
SPECS: dict[str, TableSpec] = {**TABLES, REPORT_POINTER.name: REPORT_POINTER}
SCORERS = {"bertscore", "sentence_cosine"}


@pytest.fixture(scope="module")
def defs(shared_place) -> dg.Definitions:
    village = shared_place.suite("My Village", ("Base line", "v2"))
    alone = shared_place.suite("alone", scorers=[{"type": "sentence_cosine"}])
    return build_definitions([village, alone])


@pytest.fixture(scope="module")
def graph(defs: dg.Definitions) -> Any:
    return defs.resolve_asset_graph()


@pytest.fixture(scope="module")
def nodes(graph: Any) -> dict[str, Any]:
    """Asset nodes by `suite/target/asset`."""
    return {key.to_user_string(): graph.get(key) for key in graph.get_all_asset_keys()}


def test_the_packaged_suites_are_loadable() -> None:
    suites = [load_suite("embedded"), load_suite("rag-dataset-12000")]
    dg.Definitions.validate_loadable(build_definitions(suites))


def test_assets_are_named_by_suite_target_and_table(nodes: dict[str, Any], village: ModuleType) -> None:
    of_targets = {f"my_village/{target}/{step}" for target in ("base_line", "v2") for step in village.STEPS}
    shared = {f"{suite}/{name}" for suite in ("my_village", "alone") for name in village.SHARED}
    alone = {f"alone/pipeline/{step}" for step in village.STEPS if step != "bertscore"}
    assert set(nodes) == of_targets | shared | alone


def test_the_group_is_suite_and_target(nodes: dict[str, Any]) -> None:
    for name, node in nodes.items():
        assert node.group_name == name.rsplit("/", 1)[0]


def test_owners_come_from_the_suite(nodes: dict[str, Any]) -> None:
    assert {tuple(node.owners) for node in nodes.values()} == {("team:village", "clerk@village.example")}


def test_every_asset_has_kinds_a_code_version_and_a_description_with_its_grain(nodes: dict[str, Any]) -> None:
    for name, node in nodes.items():
        spec = SPECS[name.rsplit("/", 1)[1]]
        assert "parquet" in node.kinds
        assert ("pytorch" in node.kinds) == (spec.name in SCORERS)
        assert node.code_version
        assert node.description == f"{spec.description}\n\nGrain: {spec.grain}."
        assert node.metadata["grain"] == spec.grain


def test_every_column_is_documented(nodes: dict[str, Any]) -> None:
    for name, node in nodes.items():
        spec = SPECS[name.rsplit("/", 1)[1]]
        columns = node.metadata["dagster/column_schema"].columns
        assert [column.name for column in columns] == [column.name for column in spec.columns]
        assert [column.type for column in columns] == [str(column.dtype) for column in spec.columns]
        assert [column.constraints.nullable for column in columns] == [column.nullable for column in spec.columns]
        assert all(column.description and len(column.description) > 10 for column in columns)


def test_column_lineage_leads_from_own_columns_to_columns_of_assets_upstream(nodes: dict[str, Any]) -> None:
    seen = 0
    for name, node in nodes.items():
        own = {column.name for column in SPECS[node.key.path[-1]].columns}
        lineage = node.metadata.get("dagster/column_lineage")
        for column, deps in (lineage.deps_by_column if lineage else {}).items():
            assert column in own, f"{name}: no column {column}"
            for dep in deps:
                assert dep.asset_key in node.parent_keys
                assert dep.column_name in {c.name for c in SPECS[dep.asset_key.path[-1]].columns}, f"{name}.{column}"
                seen += 1
    assert seen > 50


def test_scores_descend_from_answer_and_reference(nodes: dict[str, Any]) -> None:
    lineage = nodes["my_village/v2/bertscore"].metadata["dagster/column_lineage"].deps_by_column
    found = {(dep.asset_key.to_user_string(), dep.column_name) for dep in lineage["f1"]}
    assert found == {
        ("my_village/v2/generated_answers", "answer"),
        ("my_village/eval_examples", "reference_answer"),
    }


def test_a_report_has_no_lineage_to_a_scorer_that_its_suite_does_not_use(nodes: dict[str, Any]) -> None:
    with_it = nodes["my_village/v2/eval_report"].metadata["dagster/column_lineage"].deps_by_column
    without = nodes["alone/pipeline/eval_report"].metadata["dagster/column_lineage"].deps_by_column
    assert set(with_it) - set(without) == {"bertscore_f1_mean"}


def test_each_asset_reads_what_the_lineage_says(nodes: dict[str, Any]) -> None:
    def parents(name: str) -> set[str]:
        return {key.to_user_string() for key in nodes[f"my_village/{name}"].parent_keys}

    shared = {"my_village/corpus", "my_village/eval_examples"}
    own = {name: f"my_village/v2/{name}" for name in SPECS}
    assert parents("corpus") == parents("eval_examples") == set()
    assert parents("v2/generated_answers") == shared
    for name in ("retrieval_matches", "bertscore", "sentence_cosine"):
        assert parents(f"v2/{name}") == {"my_village/eval_examples", own["generated_answers"]}
    assert parents("v2/eval_report") == shared | {
        own[name] for name in ("generated_answers", "retrieval_matches", "bertscore", "sentence_cosine")
    }
    assert parents("v2/score_history") == {own["eval_report"]}


def test_partitions_are_days_in_utc_up_to_today(nodes: dict[str, Any]) -> None:
    before = dt.datetime.now(dt.UTC).date()
    for node in nodes.values():
        days = node.partitions_def
        assert isinstance(days, dg.DailyPartitionsDefinition)
        assert days.timezone == "UTC"
        keys = days.get_partition_keys()
        assert keys[0] == "2026-01-01"
        assert keys[-1] in (before.isoformat(), dt.datetime.now(dt.UTC).date().isoformat())


def test_today_begins_at_midnight_utc(nodes: dict[str, Any]) -> None:
    days = nodes["my_village/corpus"].partitions_def
    midnight = dt.datetime(2026, 10, 15, tzinfo=dt.UTC)
    for moment, last in [(midnight, "2026-10-15"), (midnight - dt.timedelta(seconds=1), "2026-10-14")]:
        with dg.partition_loading_context(effective_dt=moment):
            assert days.get_last_partition_key() == last


def test_the_first_day_is_the_suites(place) -> None:
    suite = place.suite(run={"start_date": dt.date(2025, 6, 30)})
    graph = build_definitions([suite]).resolve_asset_graph()
    assert graph.get(dg.AssetKey(["tiny", "corpus"])).partitions_def.get_first_partition_key() == "2025-06-30"


def test_no_asset_has_a_backfill_policy(nodes: dict[str, Any]) -> None:
    """With one, a range of dates is one run, and a failed check on one date no longer stops that date's downstream."""
    assert {node.backfill_policy for node in nodes.values()} == {None}


def test_only_scorers_take_the_gpu_pool_and_carry_cluster_tags(defs: dg.Definitions, nodes: dict[str, Any]) -> None:
    for name, node in nodes.items():
        op = defs.resolve_assets_def(node.key).op
        heavy = name.rsplit("/", 1)[1] in SCORERS
        assert node.pools == ({"gpu"} if heavy else set())
        assert op.pool == ("gpu" if heavy else None)
        assert {"dagster-k8s/config", "dagster-ray/config"} <= set(op.tags) if heavy else not op.tags


def test_checks_are_per_date_and_only_the_contract_blocks(graph: Any, nodes: dict[str, Any]) -> None:
    checks = {key: graph.get(key) for key in graph.asset_check_keys}
    assert {key.name for key, check in checks.items() if check.blocking} == {"table_contract"}
    assert all(isinstance(check.partitions_def, dg.DailyPartitionsDefinition) for check in checks.values())
    assert all(check.description for check in checks.values())
    of_target = ("generated_answers", "retrieval_matches", "bertscore", "eval_report")
    by_asset = {
        name: {key.name for key in checks if key.asset_key.to_user_string() == f"my_village/{name}"}
        for name in ("corpus", "eval_examples", *(f"v2/{table}" for table in of_target))
    }
    assert by_asset == {
        "corpus": {"table_contract"},
        "eval_examples": {"table_contract"},
        "v2/generated_answers": {"table_contract", "error_rate"},
        "v2/retrieval_matches": {"table_contract", "corpus_coverage"},
        "v2/bertscore": {"table_contract", "sound_scores", "completeness"},
        "v2/eval_report": {"table_contract", "drift", "gates"},
    }
    unchecked = {name for name in nodes if not any(key.asset_key.to_user_string() == name for key in checks)}
    assert {name.rsplit("/", 1)[1] for name in unchecked} == {"score_history"}


def test_each_suite_has_a_job_over_its_own_assets_and_checks(defs: dg.Definitions, nodes: dict[str, Any]) -> None:
    jobs = {job.name: job for job in defs.resolve_all_job_defs() if job.name.endswith("_evaluation")}
    assert set(jobs) == {"my_village_evaluation", "alone_evaluation"}
    for slug in ("my_village", "alone"):
        layer = jobs[f"{slug}_evaluation"].asset_layer
        made = {key.to_user_string() for key in layer.executable_asset_keys}
        assert made == {name for name in nodes if name.startswith(f"{slug}/")}
        checked = {key.asset_key.to_user_string() for key in layer.asset_graph.asset_check_keys}
        assert checked == {name for name in made if not name.endswith("score_history")}


def test_jobs_tell_which_version_of_which_suite_they_evaluate(defs: dg.Definitions) -> None:
    tags = {name: defs.resolve_job_def(f"{name}_evaluation").tags for name in ("my_village", "alone")}
    assert tags["my_village"]["rag_eval/suite"] == "my_village"
    assert tags["my_village"]["rag_eval/suite_sha256"] != tags["alone"]["rag_eval/suite_sha256"]


def test_one_suite_whose_name_begins_like_anothers_keeps_out_of_its_job(place) -> None:
    defs = build_definitions([place.suite("a"), place.suite("a b")])
    layer = defs.resolve_job_def("a_evaluation").asset_layer
    assert {key.path[0] for key in layer.executable_asset_keys} == {"a"}


def test_two_suites_with_one_slug_are_refused_by_both_names(place) -> None:
    with pytest.raises(ConfigurationError, match=r"'a b/c'.*'a-b-c'.*'a_b_c'"):
        build_definitions([place.suite("a b/c"), place.suite("a-b-c")])


def test_two_targets_with_one_slug_are_refused(place) -> None:
    with pytest.raises(ConfigurationError, match=r"'v 1' and 'v-1' both become 'v_1'"):
        place.suite(targets=("v 1", "v-1"))


def test_a_target_named_like_an_asset_is_refused(place) -> None:
    with pytest.raises(ConfigurationError, match="built-in asset"):
        place.suite(targets=("eval report",))


def test_suites_of_a_folder_that_collide_are_refused_when_the_location_loads(place) -> None:
    files = [place.suite(name).path.rename(place.folder / f"{n}.yaml") for n, name in enumerate(("a b/c", "a-b-c"))]
    with pytest.raises(ConfigurationError, match="'a_b_c'"):
        load_suites(os.pathsep.join(map(str, files)))


def environment(**changes: str) -> dict[str, str]:
    """The environment of a process that finds this checkout from any folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_EVAL", "DAGSTER"))}
    return {**inherited, "PYTHONPATH": str(ROOT), "DAGSTER_DISABLE_TELEMETRY": "1", **changes}


@pytest.fixture(scope="module")
def fresh_import() -> subprocess.CompletedProcess[str]:
    """The definitions imported in a process of their own, which prints every module that this loaded."""
    code = "import sys, rag_eval_assets.definitions as d; print(type(d.defs).__name__, *sorted(sys.modules))"
    return subprocess.run(
        [sys.executable, "-W", "error::dagster.PreviewWarning", "-c", code],
        env=environment(RAG_EVAL_SUITES="embedded:rag-dataset-12000"),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("library", ["torch", "transformers", "sentence_transformers", "bert_score", "ray", "pandas"])
def test_a_code_location_loads_without(library: str, fresh_import: subprocess.CompletedProcess[str]) -> None:
    assert fresh_import.returncode == 0, fresh_import.stderr
    kind, *modules = fresh_import.stdout.split()
    assert kind == "Definitions"
    assert library not in modules


def test_the_location_loads_through_workspace_yaml_from_any_folder(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(ROOT / "workspace.yaml")],
        cwd="/",
        env=environment(DAGSTER_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "Validation successful for code location rag_eval_assets" in result.stdout + result.stderr
