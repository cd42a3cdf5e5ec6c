"""Everything that Dagster loads, built from the suites."""
# pyright: reportUnknownMemberType=false
# Dagster types the metadata of define_asset_job only in part.

from __future__ import annotations

import warnings
from collections.abc import Sequence

import dagster as dg

from rag_eval_assets.orchestration.compute import executor
from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.orchestration.tags import suite_tags
from rag_eval_assets.suite.load import LoadedSuite, check_distinct
from rag_eval_assets.tables import CORPUS, EVAL_EXAMPLES, GENERATED_ANSWERS

# Partition-aware checks are a preview feature of Dagster 1.13; each of hundreds of definitions would warn of it.
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

from rag_eval_assets.orchestration.assets import build_asset  # noqa: E402 - after the filter, which must come first
from rag_eval_assets.orchestration.checks import build_checks  # noqa: E402
from rag_eval_assets.orchestration.failures import build_failure_sensor  # noqa: E402
from rag_eval_assets.orchestration.lineage import asset_key, blueprints  # noqa: E402
from rag_eval_assets.orchestration.triggers import build_corpus_sensor, build_schedule  # noqa: E402

NOT_RESCORED = (CORPUS.name, EVAL_EXAMPLES.name, GENERATED_ANSWERS.name)
"""Assets that a re-scoring keeps as they are: all that the target's answers are made of."""


def build_definitions(suites: Sequence[LoadedSuite]) -> dg.Definitions:
    """The lineages of all suites: assets, checks, two jobs each, and what starts or watches their runs.

    Raises:
        ConfigurationError: two suites have one slug, or the executor cannot be used.
    """
    check_distinct(suites)
    parts = [(suite, blueprint) for suite in suites for blueprint in blueprints(suite)]
    jobs = {suite.slug: build_job(suite) for suite in suites}
    return dg.Definitions(
        assets=[build_asset(suite, blueprint) for suite, blueprint in parts],
        asset_checks=[check for suite, blueprint in parts for check in build_checks(suite, blueprint)],
        jobs=[*jobs.values(), *(build_rescore_job(suite) for suite in suites)],
        schedules=[build_schedule(s, s.suite.schedule, jobs[s.slug]) for s in suites if s.suite.schedule],
        sensors=[sensor for suite in suites for sensor in build_sensors(suite, jobs[suite.slug])],
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


def build_rescore_job(suite: LoadedSuite) -> dg.UnresolvedAssetJobDefinition:
    """The job that matches, scores and reports the answers that are there; it never asks a target."""
    kept = [blueprint for blueprint in blueprints(suite) if blueprint.name in NOT_RESCORED]
    keys = [asset_key(suite, blueprint.name, blueprint.target) for blueprint in kept]
    return dg.define_asset_job(
        f"{suite.slug}_rescore",
        selection=dg.AssetSelection.key_prefixes([suite.slug]) - dg.AssetSelection.assets(*keys),
        description=f"Scores the answers of {suite.name} again, without asking a target.",
        tags=suite_tags(suite),
    )


def build_sensors(suite: LoadedSuite, job: dg.UnresolvedAssetJobDefinition) -> list[dg.SensorDefinition]:
    """The sensors that a suite asks for: of its corpus, of its failed runs."""
    corpus, notify = suite.suite.corpus_sensor, suite.suite.notify
    return [
        *([build_corpus_sensor(suite, corpus, job)] if corpus else []),
        *([build_failure_sensor(suite, notify)] if notify else []),
    ]
