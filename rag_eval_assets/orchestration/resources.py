"""The one resource that the launchpad, a backfill or the command line can set: how much is evaluated.

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
from rag_eval_assets.suite.load import LoadedSuite

Context = dg.AssetExecutionContext | dg.AssetCheckExecutionContext


class EvaluationResource(dg.ConfigurableResource["EvaluationResource"]):
    """Overrides of the suite for one run."""

    limit: int | None = Field(
        default=None,
        description="Evaluate only the first so many examples. Tables and report of such a run stand apart, under "
        "'<suite>~sample'; the full tables of the date and the history stay as they are.",
    )

    def open(self, context: Context, suite: LoadedSuite) -> Evaluation:
        """The evaluation of `suite` for the partition of `context`.

        Raises:
            ConfigurationError: `limit` is below 1.
        """
        if self.limit is not None and self.limit < 1:
            raise ConfigurationError(f"evaluation.limit is {self.limit}", fix="Give a number from 1, or none")
        home = Home.from_environment()
        return Evaluation(
            suite=suite,
            run_date=context.partition_key,
            home=home,
            store=open_store(home, suite),
            limit=self.limit,
            reporter=_reporter(context),
        )


def _reporter(context: Context) -> Reporter:
    running = active_session()
    return running.reporter if running else LogReporter(context.log.info)
