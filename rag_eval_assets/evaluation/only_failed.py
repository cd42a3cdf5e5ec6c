"""Asking again only what failed: which rows of a date's answers are kept, and whether they may still be mixed in."""

from __future__ import annotations

from typing import Any

from rag_eval_assets.errors import ConfigurationError, EvalError
from rag_eval_assets.evaluation.configuration import FACT, configuration_hash
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.status import AnswerStatus
from rag_eval_assets.storage.store import data_version
from rag_eval_assets.tables import CALL_LOG, CORPUS, EVAL_EXAMPLES, GENERATED_ANSWERS
from rag_eval_assets.targets import stage as stage_module
from rag_eval_assets.targets.stage import Kept

WITHOUT = "Run without --only-failed, which asks every question"


def kept_answers(evaluation: Evaluation, target: str) -> Kept:
    """The answers of the date whose call did not fail, with their lines of the call log, by example and trial.

    Raises:
        ConfigurationError: there are no answers of the date, or they are about other data or of other settings.
    """
    key, log_key = evaluation.key(GENERATED_ANSWERS.name, target), evaluation.key(CALL_LOG.name, target)
    try:
        answers, made = evaluation.store.read_with_provenance(key)
        log, log_made = evaluation.store.read_with_provenance(log_key)
        inputs = {name: evaluation.store.read(evaluation.key(name)) for name in (EVAL_EXAMPLES.name, CORPUS.name)}
    except EvalError as error:
        raise _refused(evaluation, target, error.message) from error
    if made.facts.get(FACT) != configuration_hash(evaluation.suite, GENERATED_ANSWERS.name, target):
        raise _refused(evaluation, target, "the target's settings have changed since")
    if made.code_version != stage_module.CODE_VERSION:
        raise _refused(evaluation, target, "another version of this package made the answers")
    for name, table in inputs.items():
        if made.inputs.get(name) != data_version(table):
            raise _refused(evaluation, target, f"its {name} has changed since")
    if log_made.inputs.get(GENERATED_ANSWERS.name) != data_version(answers):
        raise _refused(evaluation, target, "its call log belongs to other answers")
    good = {_row_key(row): row for row in answers.to_pylist() if row["status"] != AnswerStatus.ERROR}
    return {key: (good[key], line) for line in log.to_pylist() if (key := _row_key(line)) in good}


def targets_with_failures(evaluation: Evaluation, targets: list[str]) -> list[str]:
    """Those of `targets` that have failed calls on the date and may be asked again.

    Raises:
        ConfigurationError: none has, or the answers of one may not be mixed with new ones.
    """
    failing: list[str] = []
    for target in targets:
        kept = kept_answers(evaluation, target)
        if len(kept) < evaluation.store.read(evaluation.key(GENERATED_ANSWERS.name, target)).num_rows:
            failing.append(target)
    if not failing:
        raise ConfigurationError(
            f"no call of {evaluation.run_date} has failed, so there is nothing to ask again", fix=WITHOUT
        )
    return failing


def _row_key(row: dict[str, Any]) -> tuple[str, int]:
    return row["example_id"], row["trial"]


def _refused(evaluation: Evaluation, target: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"only what failed cannot be asked again for target {target!r} on {evaluation.run_date}: {why}", fix=WITHOUT
    )
