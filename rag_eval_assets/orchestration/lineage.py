"""The lineage of one suite as a list of blueprints: what assets there are, what each reads, what function makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import dagster as dg

from rag_eval_assets.dataset import corpus as corpus_module
from rag_eval_assets.dataset import examples as examples_module
from rag_eval_assets.evaluation import reporting, stages
from rag_eval_assets.evaluation.configuration import code_version
from rag_eval_assets.evaluation.context import Evaluation, Outcome
from rag_eval_assets.evaluation.preflight import model_needs, require, setting_needs
from rag_eval_assets.evaluation.reporting import EVAL_REPORT, RunIdentity
from rag_eval_assets.evaluation.scorers import plan_scorer, scorer_names
from rag_eval_assets.orchestration.session import active_session
from rag_eval_assets.report import build as build_module
from rag_eval_assets.retrieval import table as retrieval_module
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import (
    CORPUS,
    EVAL_EXAMPLES,
    GENERATED_ANSWERS,
    RETRIEVAL_MATCHES,
    SCORE_HISTORY,
    TableSpec,
)
from rag_eval_assets.targets import stage as stage_module

Make = Callable[[Evaluation, Callable[[], RunIdentity]], Outcome | None]
"""Makes one table; the second argument looks up which runs made the inputs. None: nothing was to be made."""

SHARED = frozenset({CORPUS.name, EVAL_EXAMPLES.name})
"""Tables that all targets of a suite read."""

REPORT_POINTER = TableSpec(
    EVAL_REPORT,
    "The evaluation report of one target: a JSON file, its per-example Parquet, and this pointer to the newest.",
    "one row: the newest report of the run date",
    SCORE_HISTORY.columns,
)


@dataclass(frozen=True)
class Blueprint:
    """One asset before Dagster knows it.

    Attributes:
        spec: the table that it writes.
        target: the target's name; None for assets that all targets share.
        inputs: names of the tables that it reads, of the same target or shared.
        make: the function that makes it.
        code_version: version of that function.
        kinds: what the UI shows as icons.
        heavy: whether it belongs on a GPU, and so takes a slot of the pool.
    """

    spec: TableSpec
    target: str | None
    inputs: tuple[str, ...]
    make: Make
    code_version: str
    kinds: tuple[str, ...] = ("parquet",)
    heavy: bool = False

    @property
    def name(self) -> str:
        """Name of the asset."""
        return self.spec.name


def blueprints(suite: LoadedSuite) -> list[Blueprint]:
    """Every asset of a suite, upstream first."""
    shared = [
        Blueprint(CORPUS, None, (), lambda e, _: stages.make_corpus(e), corpus_module.CODE_VERSION),
        Blueprint(EVAL_EXAMPLES, None, (), lambda e, _: _examples(e), examples_module.CODE_VERSION),
    ]
    return [*shared, *(made for target in suite.suite.targets for made in _of_target(suite, target))]


def _of_target(suite: LoadedSuite, target: str) -> list[Blueprint]:
    scorers = scorer_names(suite)
    asked = (EVAL_EXAMPLES.name, GENERATED_ANSWERS.name)
    return [
        Blueprint(
            GENERATED_ANSWERS,
            target,
            (CORPUS.name, EVAL_EXAMPLES.name),
            lambda e, _: stages.make_answers(e, target),
            code_version(stage_module.CODE_VERSION, suite, GENERATED_ANSWERS.name, target),
        ),
        Blueprint(
            RETRIEVAL_MATCHES,
            target,
            asked,
            lambda e, _: stages.make_matches(e, target),
            code_version(retrieval_module.CODE_VERSION, suite, RETRIEVAL_MATCHES.name, target),
        ),
        *[_scorer(suite, target, name, asked) for name in scorers],
        Blueprint(
            REPORT_POINTER,
            target,
            (CORPUS.name, *asked, RETRIEVAL_MATCHES.name, *scorers),
            lambda e, identity: _report(e, target, identity()),
            build_module.CODE_VERSION,
            kinds=("json", "parquet"),
        ),
        Blueprint(
            SCORE_HISTORY,
            target,
            (EVAL_REPORT,),
            lambda e, _: reporting.make_history(e, target),
            reporting.HISTORY_CODE_VERSION,
        ),
    ]


def _examples(evaluation: Evaluation) -> Outcome:
    # Before anything is spent on a run that could not be scored or whose report could go nowhere.
    models = model_needs(evaluation.suite, allow_download=not evaluation.modes.offline)
    require([*models, *setting_needs(evaluation.suite)], evaluation.suite)
    return stages.make_examples(evaluation)


def _scorer(suite: LoadedSuite, target: str, name: str, inputs: tuple[str, ...]) -> Blueprint:
    plan = plan_scorer(suite, name)
    make: Make = lambda e, _: stages.make_scores(e, target, name)  # noqa: E731 - one line reads best here
    version = code_version(plan.code_version, suite, name, target)
    kinds = ("pytorch", "parquet") if plan.local else ("parquet",)
    return Blueprint(plan.spec, target, inputs, make, version, kinds, heavy=plan.local)


def _report(evaluation: Evaluation, target: str, identity: RunIdentity) -> Outcome:
    outcome, written = reporting.make_report(evaluation, target, identity)
    running = active_session()
    if running:
        running.reports.append(written)
    return outcome


def asset_key(suite: LoadedSuite, blueprint_name: str, target: str | None) -> dg.AssetKey:
    """`[suite, target, asset]`, or `[suite, asset]` for what all targets share."""
    middle = [] if target is None else [suite.target_slugs[target]]
    return dg.AssetKey([suite.slug, *middle, blueprint_name])


def input_keys(suite: LoadedSuite, blueprint: Blueprint) -> dict[str, dg.AssetKey]:
    """Asset keys of a blueprint's inputs, by table name."""
    return {name: asset_key(suite, name, None if name in SHARED else blueprint.target) for name in blueprint.inputs}
