"""A run of six examples, one for each thing that can become of a question; every number is easy to check by hand."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.report.build import DatasetFacts, ReportInputs, RunFacts, build_report
from rag_eval_assets.report.examples import example_rows
from rag_eval_assets.report.schema import Corpus, Host
from rag_eval_assets.retrieval.matching import MatchSettings
from rag_eval_assets.tables import (
    BERTSCORE,
    CALL_LOG,
    EVAL_EXAMPLES,
    GENERATED_ANSWERS,
    RETRIEVAL_MATCHES,
    SENTENCE_COSINE,
)

RUN_ID = "0f8b8b0e-6f0c-5d57-9d7e-5f2b8f7f6a11"
NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)

# id, status of the answer, retrieval status, rank, score status, f1, cosine
RUN = (
    ("e1", "ok", "judged", 1, "scored", 0.9, 0.8),
    ("e2", "ok", "judged", 3, "scored", 0.5, -0.1),
    ("e3", "ok", "judged", None, "no_reference", None, None),
    ("e4", "ok", "no_context", None, "scored", 0.7, 0.6),
    ("e5", "empty", "no_passages", None, "empty_answer", None, None),
    ("e6", "error", "target_error", None, "target_error", None, None),
)


def run_tables() -> dict[str, pa.Table]:
    """The tables of `RUN`, k being 2."""
    examples, answers, matches, bertscore, cosine, calls = [], [], [], [], [], []
    for position, (example_id, status, retrieval, rank, scored, f1, cos) in enumerate(RUN):
        question, reference = f"Question {position}?", None if scored == "no_reference" else f"Reference {position}."
        context = None if retrieval == "no_context" else f"Context number {position} of the run."
        examples.append(
            {
                "example_id": example_id,
                "question": question,
                "reference_answer": reference,
                "context": context,
                "context_id": None,
                "source": "questions.jsonl",
                "source_row": position,
                "row_sha256": content_hash([question, reference, context]),
            }
        )
        key = {"example_id": example_id, "trial": 0}
        retrieved = None if retrieval in ("no_passages", "target_error") else 3
        passages = retrieved and [
            {"id": f"p{n}", "document_id": None, "text": f"Passage {n} " * 40, "score": 1 / n} for n in (1, 2, 3)
        ]
        answers.append(
            {
                **key,
                "status": status,
                "answer": f"\nAnswer {position}." if status == "ok" else None,
                "error": "503 Service Unavailable" if status == "error" else None,
                "generator": None if status == "error" else "small-model",
                "passages": passages,
                "input_tokens": 10,
                "output_tokens": 5,
                "cost_usd": 0.001,
            }
        )
        judged = retrieval == "judged"
        matches.append(
            {
                **key,
                "status": retrieval,
                "method": "text" if judged else None,
                "retrieved": retrieved,
                "rank": rank,
                "top_k_match": (rank is not None and rank <= 2) if judged else None,
                "matched": [n == rank for n in (1, 2, 3)] if judged else None,
            }
        )
        score = {**key, "status": scored, "detail": None, "truncated": example_id == "e2"}
        bertscore.append({**score, "precision": f1, "recall": f1, "f1": f1})
        cosine.append({**score, "truncated": False, "cosine": cos})
        moment = NOON + dt.timedelta(seconds=position)
        calls.append({**key, "origin": "live", "latency_ms": 100.0 + position, "attempts": 1, "answered_at": moment})
    specs = (EVAL_EXAMPLES, GENERATED_ANSWERS, RETRIEVAL_MATCHES, BERTSCORE, SENTENCE_COSINE, CALL_LOG)
    rows = (examples, answers, matches, bertscore, cosine, calls)
    return {s.name: pa.Table.from_pylist(r, schema=s.schema) for s, r in zip(specs, rows, strict=True)}


def run_rows(tables: dict[str, pa.Table], scorers: tuple[str, ...] = ("bertscore", "sentence_cosine")) -> pa.Table:
    return example_rows(
        tables["eval_examples"],
        tables["generated_answers"],
        tables["retrieval_matches"],
        {name: tables[name] for name in scorers},
    )


def run_inputs(**changes) -> ReportInputs:
    tables = run_tables()
    host = Host(instruction_set="AVX2", cpu_count=2, python="3.11.7", system="Linux", machine="x86_64")
    values = {
        "run_id": RUN_ID,
        "timestamp": NOON,
        "suite": "demo",
        "target": "embedded",
        "dataset": DatasetFacts(
            "questions", "test", "r1", [{"source": "questions.jsonl", "row": 6, "reason": "no question"}]
        ),
        "rows": run_rows(tables),
        "call_log": tables["call_log"],
        "settings": MatchSettings(k=2),
        "run": RunFacts(run_date="2026-03-01", dagster_run_id="d-1", env="qa", host=host),
        "corpus": Corpus(fingerprint="c" * 64, documents=12),
        "models": {"bertscore": {"id": "bert-base-uncased", "layer": 9}},
    }
    return ReportInputs(**{**values, **changes})


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    return run_tables()


@pytest.fixture
def rows(tables):
    return run_rows(tables)


@pytest.fixture
def make_rows():
    return run_rows


@pytest.fixture
def make_inputs():
    return run_inputs


@pytest.fixture
def report():
    return build_report(run_inputs())
