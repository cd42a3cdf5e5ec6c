"""Which recordings a suite still uses, so that the others can be dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.recording.cassette.entry import Entry
from rag_eval_assets.recording.request import embeddings_identity
from rag_eval_assets.storage.store import TableStore
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.scorers import Similarity
from rag_eval_assets.suite.targets import HttpTarget, OpenAICompatibleTarget
from rag_eval_assets.tables import GENERATED_ANSWERS


def used_by(evaluation: Evaluation) -> Callable[[Entry], bool]:
    """Whether the suite, as it is now, would look a recording up.

    A recording of a target is used where its service is still a target and its text asks a question of the data set;
    one of an embedding, where its model still scores and its text is a reference, or an answer of the newest run.

    Raises:
        ConfigurationError: a target was never run here, so that its answers are not known.
    """
    suite = evaluation.suite
    table = load_examples(suite).table
    questions = {str(text) for text in table["question"].to_pylist()}
    scorers = [scorer for scorer in suite.suite.scorers if isinstance(scorer, Similarity)]
    texts = {str(text) for text in table["reference_answer"].to_pylist() if text is not None}
    texts.update(text for scorer in scorers for text in scorer.references)
    if scorers:
        texts.update(_answers(suite, evaluation))
    identities = [embeddings_identity(s.url, s.model, dimensions=s.dimensions) for s in scorers]
    services = set(_services(suite))

    def used(entry: Entry) -> bool:
        identity: Any = entry.request.get("identity") or {}
        text = str(entry.request.get("input", ""))
        if identity.get("type") == "embeddings":
            return identity in identities and text in texts
        service = identity.get("http", identity)
        asked = text in questions or any(question in text for question in questions)
        return (service.get("url"), service.get("model")) in services and asked

    return used


def _services(suite: LoadedSuite) -> Iterator[tuple[str, str | None]]:
    for target in suite.suite.targets.values():
        if isinstance(target, HttpTarget):
            yield target.url, None
        elif isinstance(target, OpenAICompatibleTarget):
            yield target.url, target.model


def _answers(suite: LoadedSuite, evaluation: Evaluation) -> Iterator[str]:
    store: TableStore = evaluation.store
    for target in suite.suite.targets:
        key = evaluation.key(GENERATED_ANSWERS.name, target)
        dates = store.run_dates(key)
        if not dates:
            raise ConfigurationError(
                f"target {target!r} has no answers here, so which embeddings it uses is not known",
                fix=f"Run the suite first: `rag-eval run {suite.argument} --cache replay`",
            )
        newest = store.read(type(key)(key.suite, key.table, dates[-1], key.target))
        yield from (str(text) for text in newest["answer"].to_pylist() if text is not None)
