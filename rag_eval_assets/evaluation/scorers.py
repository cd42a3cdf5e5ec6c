"""From a scorer's configuration to its table and to the scorer itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.scoring import similarity as similarity_module
from rag_eval_assets.scoring.base import Scorer
from rag_eval_assets.scoring.registry import SCORERS, build_scorer
from rag_eval_assets.scoring.similarity import Similarity, SimilaritySettings
from rag_eval_assets.scoring.stores import Stores
from rag_eval_assets.suite import scorers
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import TableSpec, similarity_table


@dataclass(frozen=True)
class ScorerPlan:
    """What is known of a scorer before it is opened.

    Attributes:
        spec: the table of its scores.
        code_version: version of the code that computes them.
        local: whether its model runs in this process, and so belongs on a GPU.
    """

    spec: TableSpec
    code_version: str
    local: bool


def scorer_config(suite: LoadedSuite, name: str) -> scorers.Scorer:
    """The scorer of a suite that goes by `name`."""
    return next(scorer for scorer in suite.suite.scorers if scorer.name == name)


def scorer_names(suite: LoadedSuite) -> list[str]:
    """Names of a suite's scorers, in the suite's order."""
    return [scorer.name for scorer in suite.suite.scorers]


def plan_scorer(suite: LoadedSuite, name: str) -> ScorerPlan:
    """Table and code version of a suite's scorer; loads nothing."""
    config = scorer_config(suite, name)
    if isinstance(config, scorers.Similarity):
        return ScorerPlan(similarity_table(name), similarity_module.CODE_VERSION, local=False)
    entry = SCORERS[config.type]
    return ScorerPlan(entry.spec, entry.code_version, local=True)


@contextmanager
def open_scorer(evaluation: Evaluation, name: str, stores: Stores | None = None) -> Generator[Scorer]:
    """The scorer `name` of the evaluation's suite, for the time of a `with` block.

    Args:
        evaluation: the evaluation.
        name: the scorer's name.
        stores: where a local model's scores and embeddings are kept between runs.

    Raises:
        ConfigurationError: its model cannot be had.
    """
    suite, config = evaluation.suite, scorer_config(evaluation.suite, name)
    if isinstance(config, scorers.Similarity):
        settings = config.model_dump(exclude={"type", "given_name", "references"})
        with evaluation.channel("embeddings") as channel:
            yield Similarity(
                SimilaritySettings(name=name, references=tuple(config.references), **settings),
                channel,
                concurrency=suite.suite.run.concurrency,
            )
        return
    options = config.model_dump(exclude={"type", "model"}, exclude_none=True)
    folder = suite.model_folder(config.model)
    yield build_scorer(
        name,
        config.model,
        folder=folder,
        allow_download=not evaluation.modes.offline,
        options=options,
        stores=stores,
    )
