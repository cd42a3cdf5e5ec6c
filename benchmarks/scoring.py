"""Measures scoring beside the public packages: `python -m benchmarks.scoring --help`.

Runs are interleaved, each in a process of its own, and ratios are taken within a round, so that what else the machine
does meanwhile meets all of them. Only ratios of one invocation say something; seconds belong to a machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.experiments import EXPERIMENTS, Plan
from benchmarks.machine import describe
from benchmarks.models import LAYERS, prepare
from benchmarks.processes import Bench, work_folder
from benchmarks.table import render
from rag_eval_assets.home import Home

SIZES = (16, 64, 250, 1000, 4000)


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoring", description=__doc__.split("\n\n", 1)[0])
    names = ", ".join(f"{name} ({experiment.__doc__.split(':', 1)[0]})" for name, experiment in EXPERIMENTS.items())
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help=f"which, by default all: {names}",
        default=list(EXPERIMENTS),
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="pairs, by default %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds up to 250 pairs; above one")
    parser.add_argument("--runs", nargs="+", metavar="LABEL", help="only these runs of an experiment, and the first")
    parser.add_argument("--model", choices=list(LAYERS), default="bert-base", help="by default %(default)s")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, default=0, help="another one measures other texts")
    parser.add_argument("--gemm-seconds", type=float, default=0.3, help="time per way of multiplying and round")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.experiments if name not in EXPERIMENTS]:
        parser.error(f"no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    return chosen


def main(arguments: list[str] | None = None) -> None:
    """Measure what the command line asks for, print tables, and write JSON."""
    chosen = options(arguments)
    model = prepare(chosen.model, Home.from_environment().root / "benchmarks")
    results: dict[str, Any] = {
        "machine": describe(),
        "model": {"name": model.name, "layer": model.layer, "random_weights": model.random},
        "seed": chosen.seed,
        "experiments": {},
    }
    if model.random:
        _say(f"{model.name}: random weights of its shape (speed only; scores mean nothing)")
    if find_spec("torchmetrics") is None:
        _say("torchmetrics: not installed, left out")
    for name in chosen.experiments:
        with work_folder() as folder:
            plan = Plan(
                bench=Bench(model, folder, chosen.device, chosen.seed, chosen.gemm_seconds),
                sizes=tuple(chosen.sizes),
                rounds=chosen.rounds,
                only=frozenset(chosen.runs or ()),
                say=_say,
            )
            results["experiments"][name] = EXPERIMENTS[name](plan)
        if chosen.out:
            chosen.out.parent.mkdir(parents=True, exist_ok=True)
            chosen.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(render(results))


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
