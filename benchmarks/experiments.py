"""The experiments: which runs stand beside which, at which sizes, and which figures are taken of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from benchmarks import workload
from benchmarks.models import vocabulary
from benchmarks.processes import Bench, Run, neighbour

COLD = Run("cold", "ours")
STREAMED = Run("streamed", "streamed")
SCORES = (
    Run("bert_score.score", "bert_score.score"),
    COLD,
    Run("cold bf16", "ours", precision="bf16"),
    Run("references cached", "ours", start="cold", changed=1.0),
    Run("10 % of candidates new", "ours", start="cold", changed=0.1),
    Run("all cached", "ours", start="cold"),
    Run("BERTScorer", "BERTScorer"),
    Run("torchmetrics", "torchmetrics"),
)
COSINES = (
    Run("encode", "encode"),
    Run("cold", "ours", scorers=("sentence_cosine",), warm=True),
    Run("cold bf16", "ours", scorers=("sentence_cosine",), precision="bf16", warm=True),
    Run("all cached", "ours", start="cold", scorers=("sentence_cosine",)),
)
BOTH = (
    Run("bertscore", "ours", warm=True),
    Run("sentence_cosine", "ours", scorers=("sentence_cosine",), warm=True),
    Run("both", "ours", scorers=("bertscore", "sentence_cosine"), warm=True),
)

IMPORTED, LOADED = "imports left out", "models loaded"
"""What the time of the second table is."""

ONE_ROUND_FROM = 500
"""Pairs from which a run takes minutes and is measured once."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What an experiment is asked for; `only` names the runs besides the first, all where it is empty."""

    bench: Bench
    sizes: tuple[int, ...]
    rounds: int
    only: frozenset[str]
    say: Callable[[str], None]

    def chosen(self, runs: Iterable[Run]) -> list[Run]:
        """The runs that are asked for and can be run, each with the one whose caches it starts from."""
        there = [run for run in runs if run.subject != "torchmetrics" or find_spec("torchmetrics") is not None]
        wanted = {run.label for run in there if not self.only or run.label in self.only or run is there[0]}
        wanted |= {run.start for run in there if run.label in wanted}
        return [run for run in there if run.label in wanted]


def speed(plan: Plan) -> dict[str, Any]:
    """BERTScore beside bert-score: whole processes, cold and with caches, and the share of the best GEMM rate."""
    precisions = sorted({run.precision for run in plan.chosen(SCORES)}, reverse=True)
    gemm = [{precision: plan.bench.gemm(precision) for precision in precisions}]
    rows = _interleaved(plan, plan.chosen(SCORES), plan.sizes)
    gemm.append({precision: plan.bench.gemm(precision) for precision in precisions})
    best = {precision: max(max(taken[precision].values()) for taken in gemm) for precision in precisions}
    flops = plan.bench.model.flops_per_token()
    for row in rows:
        if row["label"] in {"cold", "cold bf16"} and row["seconds"]:
            work = flops * token_count(row["pairs"], plan.bench.seed) / 1e9
            peak = best["bf16" if row["label"] == "cold bf16" else "fp32"]
            row["share_of_best_gemm"] = {
                "whole process": work / min(row["seconds"]) / peak,
                "scoring alone": work / min(row["inner"]) / peak,
            }
    return {"rows": rows, "inner": IMPORTED, "gemm_gflops": gemm, "best_gemm_gflops": best, "flops_per_token": flops}


def cosine(plan: Plan) -> dict[str, Any]:
    """Sentence cosine beside sentence-transformers' encode: at 500 pairs."""
    rows = _interleaved(_with_sentences(plan), plan.chosen(COSINES), (_at_most(plan, 500),), repeat=True)
    return {"rows": rows, "inner": LOADED}


def both(plan: Plan) -> dict[str, Any]:
    """Both scorers with one model beside each alone: at 500 pairs."""
    rows = _interleaved(_with_sentences(plan), list(BOTH), (_at_most(plan, 500),), repeat=True)
    one, other, together = rows
    cost = {
        name: statistics.median(
            pair / max(alone) for pair, *alone in zip(together[name], one[name], other[name], strict=True)
        )
        for name in ("seconds", "inner")
    }
    return {"rows": rows, "inner": LOADED, "times_the_dearer": cost}


def busy(plan: Plan) -> dict[str, Any]:
    """A busy neighbour: how much slower each gets beside a process that keeps one core busy, at 64 pairs."""
    size, runs = _at_most(plan, 64), plan.chosen(SCORES[:2])
    rows: list[Row] = [{"label": run.label, "pairs": size, "seconds": [], "beside": [], "slower": []} for run in runs]
    for number in range(plan.rounds):
        for run, row in zip(runs, rows, strict=True):
            for name, wanted in (("seconds", False), ("beside", True)):
                with neighbour(wanted):
                    row[name].append(plan.bench.measure(run, size)["seconds"])
            row["slower"].append(row["beside"][-1] / row["seconds"][-1])
            plan.say(f"busy, round {number + 1}: {run.label} {row['slower'][-1]:.2f} times the time")
    return {"rows": rows}


def memory(plan: Plan) -> dict[str, Any]:
    """Peak memory as pairs grow: at 1,000 and 20,000 pairs, less the model's own size."""
    weights = (plan.bench.model.folder / "model.safetensors").stat().st_size / 2**20
    rows: list[Row] = []
    for size in (_at_most(plan, 1000), 20 * _at_most(plan, 1000)):
        found = plan.bench.measure(STREAMED, size)
        plan.say(f"memory: {size} pairs, {found.get('failed') or format(found['peak_mb'], '.0f') + ' MB'}")
        rows.append({"label": "streamed", "pairs": size, "above_model_mb": found["peak_mb"] - weights, **found})
    return {"rows": rows, "weights_mb": weights, "growth": rows[1]["above_model_mb"] / rows[0]["above_model_mb"] - 1}


def parity(plan: Plan) -> dict[str, Any]:
    """Parity with bert-score called with one pair at a time: the largest differences, at 32 pairs."""
    rows: list[Row] = []
    for precision in ("fp32", "bf16"):
        found = plan.bench.measure(Run(precision, "parity", precision=precision), _at_most(plan, 32))
        rows.append({"label": precision, **found})
        plan.say(f"parity: {precision} on {found.get('device')}: {found.get('largest_difference') or found['failed']}")
    return {"rows": rows}


EXPERIMENTS: dict[str, Callable[[Plan], dict[str, Any]]] = {
    "speed": speed,
    "cosine": cosine,
    "both": both,
    "busy": busy,
    "memory": memory,
    "parity": parity,
}


def _interleaved(plan: Plan, runs: list[Run], sizes: Iterable[int], *, repeat: bool = False) -> list[Row]:
    rows: list[Row] = []
    for size in sizes:
        made = {run.label: _row(run, size) for run in runs}
        rows.extend(made.values())
        for number in range(plan.rounds if repeat or size < ONE_ROUND_FROM else 1):
            for run in runs:
                _add(made[run.label], plan.bench.measure(run, size), made[runs[0].label])
                plan.say(f"{size} pairs, round {number + 1}: {_line(made[run.label])}")
    return rows


def _row(run: Run, size: int) -> Row:
    lists: dict[str, list[float]] = {name: [] for name in ("seconds", "inner", "peak_mb", "ratio", "inner_ratio")}
    return {"label": run.label, "pairs": size, **lists}


def _add(row: Row, found: dict[str, Any], first: Row) -> None:
    if "failed" in found:
        row["failed"] = found["failed"]
        return
    for name in ("seconds", "inner", "peak_mb"):
        row[name].append(found[name])
    row["means"] = found["means"]
    if "torch_imported" in found:
        row["torch_imported"] = found["torch_imported"]
    if first["seconds"]:
        row["ratio"].append(first["seconds"][-1] / found["seconds"])
        row["inner_ratio"].append(first["inner"][-1] / max(found["inner"], 1e-9))


def _line(row: Row) -> str:
    if not row["seconds"]:
        return f"{row['label']} failed: {row.get('failed')}"
    ratio = f", ratio {row['ratio'][-1]:.2f}" if row["ratio"] else ""
    return f"{row['label']} {row['seconds'][-1]:.2f} s{ratio}"


def token_count(size: int, seed: int) -> int:
    """Tokens of all distinct texts, special ones included, as far as the model sees them."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(vocabulary().with_name("tokenizer.json")))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    candidates, references = workload.pairs(size, vocabulary(), seed)
    return sum(len(encoded.ids) for encoded in tokenizer.encode_batch(list({*candidates, *references})))


def _with_sentences(plan: Plan) -> Plan:
    """The plan with a model that is a sentence encoder."""
    from dataclasses import replace

    from benchmarks.models import prepare

    bench = plan.bench
    return replace(plan, bench=Bench(prepare("minilm", bench.folder), bench.folder, bench.device, bench.seed))


def _at_most(plan: Plan, size: int) -> int:
    return min(size, max(plan.sizes))
