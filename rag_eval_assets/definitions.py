"""What Dagster loads: one lineage per suite that `RAG_EVAL_SUITES` names, by default the packaged embedded one.

    corpus ──────────┐
    eval_examples ─┬─┴> generated_answers ─┬─> retrieval_matches ─┐
                   │                       ├─> bertscore          ├─> eval_report ─> score_history
                   └───────────────────────┴─> sentence_cosine ───┘

`corpus` and `eval_examples` belong to the suite, the rest to each of its targets; every asset has one partition per
run date. Suites are read in `suite`, the work is done in `evaluation`, and `orchestration` wraps it for Dagster.
"""

from __future__ import annotations

from rag_eval_assets.orchestration.build import build_definitions
from rag_eval_assets.suite.load import load_suites

defs = build_definitions(load_suites())
