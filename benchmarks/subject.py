"""One measured process: reads what to do as JSON from stdin, does it once, and prints how long its parts took.

Each subject is what a user of that package would write. The time of the whole process is taken by whoever starts it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Outcome = dict[str, Any]


def bert_score(spec: dict[str, Any], candidates: list[str], references: list[str]) -> Outcome:
    """`bert_score.score`, as its README shows it."""
    from bert_score import score

    started = time.perf_counter()
    columns = score(candidates, references, model_type=spec["folder"], num_layers=spec["layer"], device=spec["device"])
    return {"inner": time.perf_counter() - started, "means": [float(column.mean()) for column in columns]}


def bert_scorer(spec: dict[str, Any], candidates: list[str], references: list[str]) -> Outcome:
    """`bert_score.BERTScorer`, whose model is loaded once; `inner` is the second of two calls without that."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=spec["folder"], num_layers=spec["layer"], device=spec["device"])
    started = time.perf_counter()
    columns = scorer.score(candidates, references)
    return {"inner": time.perf_counter() - started, "means": [float(column.mean()) for column in columns]}


def torchmetrics(spec: dict[str, Any], candidates: list[str], references: list[str]) -> Outcome:
    """torchmetrics' BERTScore: for speed only, its numbers are wrong for batches of different lengths."""
    from torchmetrics.functional.text.bert import bert_score as compute

    started = time.perf_counter()
    found = compute(candidates, references, model_name_or_path=spec["folder"], num_layers=spec["layer"])
    return {"inner": time.perf_counter() - started, "means": [float(found[name].mean()) for name in sorted(found)]}


def encode(spec: dict[str, Any], candidates: list[str], references: list[str]) -> Outcome:
    """sentence-transformers' `encode` of both sides, and the cosine of each pair."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(spec["folder"], device=spec["device"], local_files_only=True)
    model.encode(["warm up"])
    started = time.perf_counter()
    left, right = (model.encode(texts, convert_to_tensor=True) for texts in (candidates, references))
    cosines = model.similarity_pairwise(left, right)
    return {"inner": time.perf_counter() - started, "means": [float(cosines.mean())]}


def ours(spec: dict[str, Any], candidates: list[str], references: list[str]) -> Outcome:
    """This package's scorers, over the caches of `RAG_EVAL_HOME`, as `rag_eval_assets.score` runs them."""
    import rag_eval_assets.scoring.api  # noqa: F401  # what `score` would import
    from benchmarks.models import Model
    from rag_eval_assets.home import Home
    from rag_eval_assets.scoring.base import Pair, no_advance
    from rag_eval_assets.scoring.bertscore import BertScore
    from rag_eval_assets.scoring.cache import cache_folder, open_stores
    from rag_eval_assets.scoring.sentence_cosine import SentenceCosine

    model = Model(spec["model"], Path(spec["folder"]), spec["layer"], spec["random"]).resolved()
    options = {"precision": spec["precision"], "stores": open_stores(cache_folder(Home.from_environment()))}
    made: dict[str, Callable[[], Any]] = {
        "bertscore": lambda: BertScore(model, layer=spec["layer"], **options),
        "sentence_cosine": lambda: SentenceCosine(model, **options),
    }
    scorers = [made[name]() for name in spec["scorers"]]
    for scorer in scorers if spec["warm"] else ():
        scorer.score_pairs([Pair("warm", ("up",))], no_advance)
    pairs = [Pair(*pair) for pair in zip(candidates, ((text,) for text in references), strict=True)]
    started = time.perf_counter()
    scored = [scorer.score_pairs(pairs, no_advance) for scorer in scorers]
    inner = time.perf_counter() - started
    names = [name for scores in scored for name in (scores[0].values or {})]
    values = [[score.values or {} for score in scores] for scores in scored]
    means = [_mean([row[name] for row in rows if name in row]) for rows in values for name in rows[0]]
    return {"inner": inner, "means": means, "names": names, "torch_imported": "torch" in sys.modules}


def streamed(spec: dict[str, Any]) -> Outcome:
    """BERTScore over stored tables, batch by batch, as a run of a suite computes it: a subject for memory."""
    from benchmarks.models import Model
    from rag_eval_assets.home import Home
    from rag_eval_assets.progress import SILENT
    from rag_eval_assets.scoring.bertscore import BertScore
    from rag_eval_assets.scoring.cache import cache_folder, open_stores
    from rag_eval_assets.scoring.table import ANSWERS_READ, EXAMPLES_READ, score_table
    from rag_eval_assets.storage.parquet import read_parquet

    model = Model(spec["model"], Path(spec["folder"]), spec["layer"], spec["random"]).resolved()
    stores = open_stores(cache_folder(Home.from_environment()))
    scorer = BertScore(model, layer=spec["layer"], precision=spec["precision"], stores=stores)
    examples, answers = (read_parquet(Path(spec["texts"]), names) for names in (EXAMPLES_READ, ANSWERS_READ))
    before = peak_megabytes()
    started = time.perf_counter()
    scores = score_table(scorer, examples, answers, SILENT)
    inner = time.perf_counter() - started
    return {"inner": inner, "means": [_mean(scores["f1"].to_pylist())], "before_mb": before}


def parity(spec: dict[str, Any], candidates: list[str], references: list[str]) -> Outcome:
    """The largest difference to bert-score, called with one pair at a time on the CPU."""
    from bert_score import BERTScorer

    from benchmarks.models import Model
    from rag_eval_assets.scoring.base import Pair, no_advance
    from rag_eval_assets.scoring.bertscore import BertScore

    model = Model(spec["model"], Path(spec["folder"]), spec["layer"], spec["random"]).resolved()
    scorer = BertScore(model, layer=spec["layer"], precision=spec["precision"])
    pairs = [Pair(*pair) for pair in zip(candidates, ((text,) for text in references), strict=True)]
    started = time.perf_counter()
    scores = scorer.score_pairs(pairs, no_advance)
    inner = time.perf_counter() - started
    oracle = BERTScorer(model_type=spec["folder"], num_layers=spec["layer"], device="cpu")
    columns = oracle.score(candidates, references, batch_size=1)
    expected = dict(zip(("precision", "recall", "f1"), (column.tolist() for column in columns), strict=True))
    largest = {
        name: max(abs((score.values or {})[name] - value) for score, value in zip(scores, values, strict=True))
        for name, values in expected.items()
    }
    return {"inner": inner, "means": [], "largest_difference": largest, "device": scorer.describe()["device_name"]}


def _mean(values: list[float]) -> float:
    return sum(values) / max(len(values), 1)


SUBJECTS: dict[str, Callable[[dict[str, Any], list[str], list[str]], Outcome]] = {
    "bert_score.score": bert_score,
    "BERTScorer": bert_scorer,
    "torchmetrics": torchmetrics,
    "encode": encode,
    "ours": ours,
    "parity": parity,
}


def peak_megabytes() -> float:
    """Most memory that this process has had in use (resident set)."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)


def main() -> None:
    """Measure what stdin asks for."""
    spec = json.load(sys.stdin)
    if spec["subject"] == "streamed":
        outcome = streamed(spec)
    else:
        candidates, references = json.loads(Path(spec["texts"]).read_text(encoding="utf-8"))
        outcome = SUBJECTS[spec["subject"]](spec, candidates, references)
    sys.stdout.write(json.dumps({**outcome, "peak_mb": peak_megabytes()}) + "\n")


if __name__ == "__main__":
    main()
