"""The embedded pipeline with the real all-MiniLM-L6-v2: honest, deterministic, offline."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_eval_assets.dataset.corpus import Document, DocumentSet
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.progress import SILENT
from rag_eval_assets.scoring import encoders
from rag_eval_assets.scoring.encoders import load_encoder
from rag_eval_assets.suite.targets import EmbeddedTarget
from rag_eval_assets.targets.base import Answer
from rag_eval_assets.targets.embedded import EmbeddedPipeline
from rag_eval_assets.targets.index import Vectors
from rag_eval_assets.weights.resolve import ResolvedModel, resolve

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    "bridge": "The stone bridge over the Aver was finished in 1874. It carries two lanes. Lorries may not cross it.",
    "bakery": "The bakery opens at six in the morning. On Sundays it is closed. Its rye bread is baked at night.",
    "museum": "The museum shows clocks. The oldest clock was made in 1702. Entry is free on Mondays.",
    "copy": "The bakery opens at six in the morning. On Sundays it is closed. Its rye bread is baked at night.",
}
QUESTIONS = ["When was the stone bridge finished?", "When does the bakery open?", "How old is the oldest clock?"]
CONFIG = {"type": "embedded", "top_k": 3, "chunking": {"max_words": 14}}

ELSEWHERE = """
import asyncio, json, sys
from pathlib import Path
from rag_eval_assets.dataset.corpus import Document, DocumentSet
from rag_eval_assets.progress import SILENT
from rag_eval_assets.suite.targets import EmbeddedTarget
from rag_eval_assets.targets.embedded import EmbeddedPipeline
from rag_eval_assets.weights.resolve import resolve

documents, config, questions, cache = json.loads(sys.argv[1])
made = DocumentSet(tuple(Document(name, None, text) for name, text in documents.items()))
model = resolve(config.get("model", "all-MiniLM-L6-v2"), allow_download=False)
pipeline = EmbeddedPipeline(EmbeddedTarget.model_validate(config), made, model, Path(cache))
asyncio.run(pipeline.prepare(SILENT))
print(json.dumps([asyncio.run(pipeline.answer(question, 0)).to_json() for question in questions]))
"""


def document_set(texts: dict[str, str]) -> DocumentSet:
    return DocumentSet(tuple(Document(name, None, text) for name, text in texts.items()))


@pytest.fixture(scope="module")
def minilm() -> ResolvedModel:
    try:
        return resolve("all-MiniLM-L6-v2", allow_download=False)
    except ConfigurationError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2, as in the extra `offline`: {error}")


@pytest.fixture(scope="module")
def open_pipeline(minilm: ResolvedModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., EmbeddedPipeline]:
    """Prepared pipelines over some documents; the model is loaded once for all."""
    shared = tmp_path_factory.mktemp("cache")

    def make(texts: dict[str, str] = DOCUMENTS, cache: Path = shared, **changes: Any) -> EmbeddedPipeline:
        config = EmbeddedTarget.model_validate({**CONFIG, **changes})
        pipeline = EmbeddedPipeline(config, document_set(texts), minilm, cache)
        asyncio.run(pipeline.prepare(SILENT))
        return pipeline

    return make


@pytest.fixture(scope="module")
def pipeline(open_pipeline: Callable[..., EmbeddedPipeline]) -> EmbeddedPipeline:
    return open_pipeline()


def ask(pipeline: EmbeddedPipeline, question: str, trial: int = 0) -> Answer:
    return asyncio.run(pipeline.answer(question, trial))


def passages(answer: Answer) -> list[tuple[str | None, str | None, float | None]]:
    return [(passage.id, passage.text, passage.score) for passage in answer.passages or ()]


def test_it_finds_the_passage_and_quotes_the_sentence(pipeline: EmbeddedPipeline) -> None:
    answer = ask(pipeline, QUESTIONS[0])
    assert answer.passages is not None
    assert answer.passages[0].document_id == "bridge"
    assert answer.text is not None
    assert answer.text.startswith("The stone bridge over the Aver was finished in 1874.")
    assert answer.generator == "extractive/all-MiniLM-L6-v2"
    assert (answer.input_tokens, answer.output_tokens, answer.cost_usd) == (None, None, None)


def test_passages_come_best_first_and_as_many_as_asked_for(pipeline: EmbeddedPipeline) -> None:
    for question in QUESTIONS:
        scores = [score for _, _, score in passages(ask(pipeline, question))]
        assert len(scores) == 3
        assert scores == sorted(scores, key=lambda score: -(score or 0))
        assert all(score is not None and -1 <= score <= 1 for score in scores)


def test_equal_documents_tie_and_stand_in_corpus_order(pipeline: EmbeddedPipeline) -> None:
    found = passages(ask(pipeline, QUESTIONS[1]))[:2]
    assert [name for name, _, _ in found] == ["bakery#0", "copy#0"]
    assert found[0][1:] == found[1][1:]


def test_the_answer_quotes_at_most_so_many_sentences_in_the_order_of_retrieval(
    open_pipeline: Callable[..., EmbeddedPipeline],
) -> None:
    wordy = open_pipeline(answer_sentences=20)
    for question in QUESTIONS:
        answer = ask(wordy, question)
        assert answer.text is not None
        retrieved = " ".join(passage.text or "" for passage in answer.passages or ())
        sentences = [part.rstrip(".") + "." for part in answer.text.split(". ")]
        places = [retrieved.index(sentence) for sentence in sentences]
        assert places == sorted(places)
        assert len(sentences) == len(set(sentences))
    one = ask(open_pipeline(answer_sentences=1), QUESTIONS[1])
    assert one.text == "The bakery opens at six in the morning."


def test_every_trial_is_answered_alike(pipeline: EmbeddedPipeline) -> None:
    assert ask(pipeline, QUESTIONS[2], trial=0) == ask(pipeline, QUESTIONS[2], trial=7)


def test_an_answer_depends_on_the_question_alone(open_pipeline: Callable[..., EmbeddedPipeline]) -> None:
    forwards, backwards = open_pipeline(), open_pipeline()
    one = [ask(forwards, question) for question in QUESTIONS]
    other = [ask(backwards, question) for question in reversed(QUESTIONS)]
    assert one == other[::-1]


def test_another_process_gives_the_same_answers_to_the_last_bit(pipeline: EmbeddedPipeline, tmp_path: Path) -> None:
    # An index of its own, another hash seed, another number of threads.
    given = json.dumps([DOCUMENTS, CONFIG, QUESTIONS, str(tmp_path)])
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ELSEWHERE, given]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    here = [ask(pipeline, question).to_json() for question in QUESTIONS]
    assert json.loads(done.stdout) == json.loads(json.dumps(here))


class CountingEncoder:
    """The real encoder, counting the texts that it is given."""

    def __init__(self, model: ResolvedModel) -> None:
        self._encoder = load_encoder(model)
        self.texts = 0

    def encode(self, texts: list[str]) -> Vectors:
        self.texts += len(texts)
        return self._encoder.encode(texts)


def test_a_corpus_is_embedded_once(
    open_pipeline: Callable[..., EmbeddedPipeline],
    minilm: ResolvedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting = CountingEncoder(minilm)
    monkeypatch.setattr(encoders, "load_encoder", lambda _, **__: counting)
    first = open_pipeline(cache=tmp_path)
    built = counting.texts
    assert built > len(DOCUMENTS)
    second = open_pipeline(cache=tmp_path, top_k=2, answer_sentences=1)
    assert counting.texts == built
    assert ask(second, QUESTIONS[0]).passages == (ask(first, QUESTIONS[0]).passages or ())[:2]
    [file] = tmp_path.glob("index/*.vectors")
    damaged = file.read_bytes()[:-100] + bytes(100)
    file.unlink()  # a file that is mapped must not be written into
    file.write_bytes(damaged)
    before = counting.texts
    assert ask(open_pipeline(cache=tmp_path), QUESTIONS[0]) == ask(first, QUESTIONS[0])
    assert counting.texts - before >= built
    open_pipeline({**DOCUMENTS, "more": "One more."}, cache=tmp_path)
    assert len(list(tmp_path.glob("index/*.vectors"))) == 2


def test_a_corpus_smaller_than_top_k_gives_all_of_it(open_pipeline: Callable[..., EmbeddedPipeline]) -> None:
    tiny = open_pipeline({"only": "Yes."}, top_k=1000, answer_sentences=20)
    answer = ask(tiny, QUESTIONS[0])
    assert [(name, text) for name, text, _ in passages(answer)] == [("only#0", "Yes.")]
    assert answer.text == "Yes."


@pytest.mark.parametrize(
    "question", ["word " * 3000, "?", "\u200b", "\x00\x01", "😀", "これは質問ですか。", "a\u2028b\n\n"], ids=ascii
)
def test_any_question_is_answered(pipeline: EmbeddedPipeline, question: str) -> None:
    answer = ask(pipeline, question)
    assert len(answer.passages or ()) == 3
    assert answer.text


def test_the_identity_is_of_all_that_the_answers_depend_on(open_pipeline: Callable[..., EmbeddedPipeline]) -> None:
    pipelines = [
        open_pipeline(),
        open_pipeline({**DOCUMENTS, "more": "One more."}),
        open_pipeline(top_k=4),
        open_pipeline(answer_sentences=1),
        open_pipeline(chunking={"max_words": 15}),
        open_pipeline(generator="mine"),
    ]
    identities = [json.dumps(pipeline.identity(), sort_keys=True) for pipeline in pipelines]
    assert len(set(identities)) == len(pipelines)
    assert identities[0] == json.dumps(open_pipeline().identity(), sort_keys=True)
    assert ask(pipelines[-1], QUESTIONS[0]).generator == "mine"
    assert str(ROOT.home()) not in identities[0]
