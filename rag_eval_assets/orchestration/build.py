"""Everything that Dagster loads, built from the suites."""
# pyright: reportUnknownMemberType=false
# Dagster types the metadata of define_asset_job only in part.

from __future__ import annotations

import warnings
from collections.abc import Sequence

import dagster as dg

from rag_eval_assets.orchestration.compute import executor
from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.suite.load import LoadedSuite, check_distinct

# Partition-aware checks are a preview feature of Dagster 1.13; each of hundreds of definitions would warn of it.
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

from rag_eval_assets.orchestration.assets import build_asset  # noqa: E402 - after the filter, which must come first
from rag_eval_assets.orchestration.checks import build_checks  # noqa: E402
from rag_eval_assets.orchestration.lineage import blueprints  # noqa: E402

SUITE_TAG = "rag_eval/suite"
SUITE_HASH_TAG = "rag_eval/suite_sha256"


def build_definitions(suites: Sequence[LoadedSuite]) -> dg.Definitions:
    """The lineages of all suites: assets, checks, one job each.

    Raises:
        ConfigurationError: two suites have one slug, or the executor cannot be used.
    """
    check_distinct(suites)
    parts = [(suite, blueprint) for suite in suites for blueprint in blueprints(suite)]
    return dg.Definitions(
        assets=[build_asset(suite, blueprint) for suite, blueprint in parts],
        asset_checks=[check for suite, blueprint in parts for check in build_checks(suite, blueprint)],
        jobs=[build_job(suite) for suite in suites],
        resources={"evaluation": EvaluationResource()},
        executor=executor(),
    )


def job_name(suite: LoadedSuite) -> str:
    """Name of the job that evaluates one suite for one run date."""
    return f"{suite.slug}_evaluation"


def build_job(suite: LoadedSuite) -> dg.UnresolvedAssetJobDefinition:
    """The job that materializes the whole lineage of a suite for one run date."""
    return dg.define_asset_job(
        job_name(suite),
        selection=dg.AssetSelection.key_prefixes([suite.slug]),
        description=suite.suite.description,
        tags=suite_tags(suite),
    )


def suite_tags(suite: LoadedSuite) -> dict[str, str]:
    """Run tags that say which suite was evaluated, and in which version of its file."""
    return {SUITE_TAG: suite.slug[:63], SUITE_HASH_TAG: suite.sha256[:16]}
