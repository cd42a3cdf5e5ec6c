"""Compares scores with the public packages' on real texts: `python -m benchmarks.parity --model bert-base --pairs 500`.

The oracle is `engine: reference`: bert-score called with one pair, sentence-transformers with one text at a time. It
is slow; `--start` takes up where an earlier piece ended.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.models import LAYERS, SENTENCES, Model, prepare
from rag_eval_assets.home import Home
from rag_eval_assets.scoring.base import Pair, Scorer, no_advance
from rag_eval_assets.scoring.bertscore import BertScore
from rag_eval_assets.scoring.sentence_cosine import SentenceCosine
from rag_eval_assets.weights.resolve import ResolvedModel, resolve

ROWS = Path(__file__).parents[1] / "../shared/data/rag_dataset_12000_train_0_99.parquet"

_SENTENCE_FILES = ("modules.json", "sentence_bert_config.json", "1_Pooling")


def pairs(rows: Path, count: int) -> list[Pair]:
    """Answers of a data set against other answers, and against sentences of contexts, in turns; always the same."""
    table = pq.read_table(rows, columns=["answer", "context"]).to_pylist()
    answers = [str(row["answer"]) for row in table]
    sentences = [part.strip() for row in table for part in str(row["context"]).split(". ") if part.strip()]
    draw = random.Random(11)
    return [Pair(draw.choice(answers), (draw.choice((answers, sentences)[n % 2]),)) for n in range(count)]


def differences(ours: Scorer, theirs: Scorer, chosen: Sequence[Pair]) -> dict[str, Any]:
    """The largest difference of each value; rows whose status differs are counted apart."""
    found, expected = (scorer.score_pairs(chosen, no_advance) for scorer in (ours, theirs))
    both = list(zip(found, expected, strict=True))
    largest: dict[str, float] = {}
    for one, other in both:
        for name, value in (one.values or {}).items():
            if other.values is not None:
                largest[name] = max(largest.get(name, 0.0), abs(value - other.values[name]))
    return {
        "pairs": len(chosen),
        "other_status": sum((one.status, one.truncated) != (other.status, other.truncated) for one, other in both),
        "truncated": sum(one.truncated for one in found),
        "largest_difference": largest,
    }


def as_sentence_encoder(model: Model, folder: Path) -> ResolvedModel:
    """The model with MiniLM's pooling files beside it, where it has none of its own."""
    resolved = model.resolved()
    if (resolved.path / "modules.json").is_file():
        return resolved
    lender = resolve(SENTENCES, allow_download=False).path
    for file in (*resolved.path.iterdir(), *(lender / name for name in _SENTENCE_FILES)):
        (folder / file.name).symlink_to(file.resolve())
    return ResolvedModel(resolved.pin, folder, "folder")


def main(arguments: list[str] | None = None) -> None:
    """Compare, and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--model", choices=list(LAYERS), default="bert-base")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--start", type=int, default=0, help="pairs to pass over")
    parser.add_argument("--scorers", nargs="+", choices=("bertscore", "cosine"), default=["bertscore", "cosine"])
    parser.add_argument("--data", type=Path, default=ROWS, help="a Parquet file with the columns answer and context")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    chosen = parser.parse_args(arguments)
    if not chosen.data.is_file():
        parser.error(f"{chosen.data} is not there")
    model = prepare(chosen.model, Home.from_environment().root / "benchmarks")
    compared = pairs(chosen.data, chosen.start + chosen.pairs)[chosen.start :]
    results: dict[str, Any] = {"model": model.name, "random_weights": model.random, "start": chosen.start}
    if "bertscore" in chosen.scorers:
        ours, theirs = (BertScore(model.resolved(), layer=model.layer, engine=name) for name in (None, "reference"))
        results["bertscore"] = differences(ours, theirs, compared)
    if "cosine" in chosen.scorers:
        with tempfile.TemporaryDirectory() as folder:
            encoder = as_sentence_encoder(model, Path(folder))
            ours, theirs = (SentenceCosine(encoder, engine=name) for name in (None, "reference"))
            results["cosine"] = differences(ours, theirs, compared)
    told = json.dumps(results, indent=1) + "\n"
    if chosen.out:
        chosen.out.write_text(told, encoding="utf-8")
    sys.stdout.write(told)


if __name__ == "__main__":
    main()
