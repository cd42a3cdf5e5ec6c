"""The one resource that the launchpad, a backfill or the command line can set: how much, and from which recordings.

No `from __future__ import annotations` here: Dagster reads the fields' types at run time.
"""

import dagster as dg
from pydantic import Field

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.home import Home
from rag_eval_assets.orchestration.session import active_session
from rag_eval_assets.orchestration.tables import open_store
from rag_eval_assets.progress import LogReporter, Reporter
from rag_eval_assets.recording.modes import ON_A_SCHEDULE, Modes, choose_modes, read_mode
from rag_eval_assets.suite.load import LoadedSuite

Context = dg.AssetExecutionContext | dg.AssetCheckExecutionContext


class EvaluationResource(dg.ConfigurableResource["EvaluationResource"]):
    """Overrides of the suite for one run."""

    limit: int | None = Field(
        default=None,
        description="Evaluate only the first so many examples. Tables and report of such a run stand apart, under "
        "'<suite>~sample'; the full tables of the date and the history stay as they are.",
    )

    cache: str | None = Field(
        default=None,
        description="auto, replay, live or off for all recorded calls of this run. By default as the suite says, else "
        "live for calls to targets and auto for embeddings.",
    )
    cache_target: str | None = Field(default=None, description="The same for calls to targets alone.")
    cache_embeddings: str | None = Field(default=None, description="The same for calls for embeddings alone.")

    only_failed: bool = Field(
        default=False,
        description="Ask again only the questions whose call failed; the other answers of the date are kept.",
    )

    def modes(self, suite: LoadedSuite) -> Modes:
        """What each channel of calls does with its recordings.

        Raises:
            ConfigurationError: a mode is unknown.
        """
        given = {name: getattr(self, name) for name in ("cache", "cache_target", "cache_embeddings")}
        both, target, embeddings = (read_mode(mode, f"evaluation.{name}") for name, mode in given.items())
        cache = suite.suite.cache
        return choose_modes(
            ON_A_SCHEDULE, suite=(cache.target, cache.embeddings), both=both, target=target, embeddings=embeddings
        )

    def open(self, context: Context, suite: LoadedSuite) -> Evaluation:
        """The evaluation of `suite` for the partition of `context`.

        Raises:
            ConfigurationError: `limit` is below 1, or a mode is unknown.
        """
        if self.limit is not None and self.limit < 1:
            raise ConfigurationError(f"evaluation.limit is {self.limit}", fix="Give a number from 1, or none")
        home = Home.from_environment()
        return Evaluation(
            suite=suite,
            run_date=context.partition_key,
            home=home,
            store=open_store(home, suite),
            modes=self.modes(suite),
            limit=self.limit,
            only_failed=self.only_failed,
            reporter=_reporter(context),
        )


def _reporter(context: Context) -> Reporter:
    running = active_session()
    return running.reporter if running else LogReporter(context.log.info)
