"""The stages in the order of the lineage; each docstring is the description of the asset that wraps it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from rag_eval_assets.dataset import corpus as corpus_module
from rag_eval_assets.dataset import examples as examples_module
from rag_eval_assets.dataset.corpus import DocumentSet, load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.configuration import FACT, configuration_hash
from rag_eval_assets.evaluation.context import Evaluation, Outcome
from rag_eval_assets.evaluation.journals import open_journal
from rag_eval_assets.evaluation.only_failed import kept_answers
from rag_eval_assets.evaluation.preview import preview
from rag_eval_assets.evaluation.scorers import open_scorer
from rag_eval_assets.retrieval import table as retrieval_module
from rag_eval_assets.retrieval.matching import MatchSettings
from rag_eval_assets.retrieval.table import match_table
from rag_eval_assets.scoring.base import value_names
from rag_eval_assets.scoring.cache import Caches, cache_folder, describe_events, open_caches
from rag_eval_assets.scoring.similarity import Similarity
from rag_eval_assets.scoring.table import ANSWERS_READ, EXAMPLES_READ, score_table
from rag_eval_assets.status import MatchStatus, ScoreStatus
from rag_eval_assets.storage.store import Provenance, data_version
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.tables import (
    CALL_LOG,
    CORPUS,
    EVAL_EXAMPLES,
    GENERATED_ANSWERS,
    RETRIEVAL_MATCHES,
    scorer_calls_table,
)
from rag_eval_assets.targets import stage as stage_module
from rag_eval_assets.targets.registry import open_target
from rag_eval_assets.targets.stage import StageOptions, generate_answers


def make_corpus(evaluation: Evaluation) -> Outcome:
    """Manifest of the documents that the target may retrieve from: ids and hashes, not texts."""
    documents = load_corpus(evaluation.suite, offline=evaluation.modes.offline)
    facts = {"fingerprint": documents.fingerprint, "documents": len(documents.documents)}
    provenance = Provenance(corpus_module.CODE_VERSION, counts={"documents": len(documents.documents)}, facts=facts)
    manifest = documents.manifest()
    stored = evaluation.store.write(evaluation.key(CORPUS.name), manifest, provenance)
    notes = {"fingerprint": documents.fingerprint}
    return Outcome(stored, {"documents": stored.rows}, {"documents": float(stored.rows)}, preview(manifest), notes)


def make_examples(evaluation: Evaluation) -> Outcome:
    """The questions of a run with their reference answers and ground-truth contexts."""
    examples = load_examples(evaluation.suite, evaluation.limit, offline=evaluation.modes.offline)
    counts = {"examples": examples.table.num_rows, "excluded": len(examples.excluded), "total": examples.total}
    provenance = Provenance(examples_module.CODE_VERSION, counts=counts, facts=examples.facts())
    stored = evaluation.store.write(evaluation.key(EVAL_EXAMPLES.name), examples.table, provenance)
    metrics = {name: float(count) for name, count in counts.items()}
    notes = {"data set": examples.name, "fingerprint": examples.fingerprint}
    return Outcome(stored, counts, metrics, preview(examples.table), notes)


def make_answers(evaluation: Evaluation, target: str) -> Outcome:
    """What the target answered to each question, and the passages it retrieved; only this stage calls the target."""
    suite, store = evaluation.suite, evaluation.store
    examples = store.read(evaluation.key(EVAL_EXAMPLES.name))
    documents = _current_documents(evaluation)
    run, config = suite.suite.run, suite.suite.targets[target]
    options = StageOptions(run.concurrency, run.max_error_rate, config.generator)
    kept = kept_answers(evaluation, target) if evaluation.only_failed else None
    with open_journal(evaluation, target) as journal, evaluation.channel("target") as channel:
        opened = open_target(suite, target, documents, evaluation.home.cache, channel)
        made = generate_answers(examples, opened, journal, options, evaluation.reporter, kept)
        inputs = {
            EVAL_EXAMPLES.name: data_version(examples),
            CORPUS.name: data_version(documents.manifest()),
        }
        facts = {FACT: configuration_hash(suite, GENERATED_ANSWERS.name, target)}
        provenance = Provenance(stage_module.CODE_VERSION, inputs, made.counts, facts)
        # The log first, and with the version of its answers: a kill in between leaves a log that names other answers
        # than those that are there, which the report then refuses to mix.
        log_inputs = {**inputs, GENERATED_ANSWERS.name: data_version(made.answers)}
        log_provenance = Provenance(stage_module.CODE_VERSION, log_inputs, made.counts)
        store.write(evaluation.key(CALL_LOG.name, target), made.call_log, log_provenance)
        stored = store.write(evaluation.key(GENERATED_ANSWERS.name, target), made.answers, provenance)
        journal.close_committed()
    failed = made.counts["error"] / max(made.answers.num_rows, 1)
    origins = Counter(str(origin) for origin in made.call_log.column("origin").to_pylist())
    metrics = {"answers": float(stored.rows), "error_rate": failed, **{k: float(v) for k, v in made.counts.items()}}
    notes = {"calls": ", ".join(f"{count} {origin}" for origin, count in sorted(origins.items()))}
    return Outcome(stored, made.counts, metrics, preview(made.answers), notes)


def make_matches(evaluation: Evaluation, target: str) -> Outcome:
    """Whether, and at which rank, the ground-truth context was among the retrieved passages."""
    examples, answers, inputs = _examples_and_answers(evaluation, target)
    matches = match_table(examples, answers, match_settings(evaluation.suite), evaluation.reporter)
    counts = _status_counts(matches, [str(status) for status in MatchStatus])
    facts = {FACT: configuration_hash(evaluation.suite, RETRIEVAL_MATCHES.name, target)}
    provenance = Provenance(retrieval_module.CODE_VERSION, inputs, counts, facts)
    stored = evaluation.store.write(evaluation.key(RETRIEVAL_MATCHES.name, target), matches, provenance)
    hits = [bool(hit) for hit in matches.column("top_k_match").to_pylist() if hit is not None]
    metrics = {"judged": float(len(hits))}
    if hits:
        metrics["top_k_match_rate"] = sum(hits) / len(hits)
    return Outcome(stored, counts, metrics, preview(matches))


def make_scores(evaluation: Evaluation, target: str, scorer_name: str) -> Outcome:
    """How near each generated answer is to its reference answer, by one scorer."""
    examples, answers, inputs = _examples_and_answers(evaluation, target)
    # Contexts and passages may be far larger than all else, and are not looked at while models compute.
    examples, answers = examples.select(EXAMPLES_READ), answers.select(ANSWERS_READ)
    caches = open_caches(cache_folder(evaluation.home))
    with open_scorer(evaluation, scorer_name, caches.stores) as scorer:
        scores = score_table(scorer, examples, answers, evaluation.reporter)
    counts = _status_counts(scores, [str(status) for status in ScoreStatus])
    counts["truncated"] = sum(map(bool, scores.column("truncated").to_pylist()))
    facts = {"scorer": scorer.describe(), FACT: configuration_hash(evaluation.suite, scorer_name, target)}
    provenance = Provenance(scorer.code_version, inputs, counts, facts)
    notes = _keep_calls(evaluation, target, scorer) if isinstance(scorer, Similarity) else _cache_notes(caches)
    stored = evaluation.store.write(evaluation.key(scorer.spec.name, target), scores, provenance)
    metrics = {"scored": float(counts[ScoreStatus.SCORED]), **_means(scores, value_names(scorer.spec))}
    if "passed" in scores.schema.names:
        metrics["passed"] = float(sum(map(bool, scores.column("passed").to_pylist())))
    return Outcome(stored, counts, metrics, preview(scores), notes)


def _cache_notes(caches: Caches) -> dict[str, str]:
    """How much of a scorer's work was found done, and what was wrong with the caches."""
    events = caches.take_events()
    asked = events["scores"].hits + events["scores"].misses
    notes = {"score cache": f"{events['scores'].hits} of {asked} pairs found"} if asked else {}
    troubles = describe_events(events)
    return {**notes, **({"cache troubles": "; ".join(troubles)} if troubles else {})}


def _keep_calls(evaluation: Evaluation, target: str, scorer: Similarity) -> dict[str, str]:
    """Store how the scorer's calls were answered, apart from its scores, which equal runs have in common."""
    calls, spec = scorer.calls(), scorer_calls_table(scorer.name)
    row = pa.Table.from_pylist([calls], schema=spec.schema)
    evaluation.store.write(evaluation.key(spec.name, target), row, Provenance(scorer.code_version))
    return {"calls": ", ".join(f"{calls[name]} {name}" for name in ("live", "replayed", "recorded", "missing"))}


def match_settings(suite: LoadedSuite) -> MatchSettings:
    """The suite's `retrieval` block as the matcher's settings."""
    return MatchSettings(**suite.suite.retrieval.model_dump())


def _current_documents(evaluation: Evaluation) -> DocumentSet:
    """The corpus as it is now, which must be the one in the manifest: the answers are about that one."""
    documents = load_corpus(evaluation.suite, offline=evaluation.modes.offline)
    manifest = evaluation.store.read(evaluation.key(CORPUS.name))
    if data_version(manifest) != data_version(documents.manifest()):
        raise InfrastructureError(
            f"the corpus has changed since its manifest of {evaluation.run_date} was made",
            fix=f"Materialize {CORPUS.name!r} of that date again, then the answers",
        )
    return documents


def _examples_and_answers(evaluation: Evaluation, target: str) -> tuple[pa.Table, pa.Table, dict[str, str]]:
    examples = evaluation.store.read(evaluation.key(EVAL_EXAMPLES.name))
    answers = evaluation.store.read(evaluation.key(GENERATED_ANSWERS.name, target))
    inputs = {EVAL_EXAMPLES.name: data_version(examples), GENERATED_ANSWERS.name: data_version(answers)}
    return examples, answers, inputs


def _status_counts(table: pa.Table, statuses: list[str]) -> dict[str, int]:
    found = Counter(str(status) for status in table.column("status").to_pylist())
    return {status: found[status] for status in statuses}


def _means(scores: pa.Table, names: tuple[str, ...]) -> dict[str, float]:
    means: dict[str, float] = {}
    for name in names:
        values = [float(value) for value in scores.column(name).to_pylist() if value is not None]
        if values:
            means[f"{name}_mean"] = sum(values) / len(values)
    return means
