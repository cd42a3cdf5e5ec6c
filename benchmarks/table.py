"""Turns results into Markdown tables of ratios: `python -m benchmarks.table RESULTS.json ...`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def render(results: dict[str, Any]) -> str:
    """One table per experiment."""
    parts = [
        f"### {name}\n\n{_RENDERERS.get(name, _ratios)(found)}\n" for name, found in results["experiments"].items()
    ]
    return "\n".join(parts)


def _ratios(found: dict[str, Any]) -> str:
    sizes = list(dict.fromkeys(row["pairs"] for row in found["rows"]))
    labels = list(dict.fromkeys(row["label"] for row in found["rows"]))
    cells = {(row["label"], row["pairs"]): row for row in found["rows"]}
    first = labels[0]
    lines = [f"| times as fast as {first}, whole process | " + " | ".join(f"{size:,}" for size in sizes) + " |"]
    lines.append("|---|" + "---|" * len(sizes))
    lines += [
        f"| {label} | " + " | ".join(_spread(cells.get((label, size), {}), "ratio") for size in sizes) + " |"
        for label in labels
        if label != first
    ]
    lines += ["", f"| the same, {found['inner']} | {' | '.join(f'{size:,}' for size in sizes)} |"]
    lines.append("|---|" + "---|" * len(sizes))
    lines += [
        f"| {label} | " + " | ".join(_spread(cells.get((label, size), {}), "inner_ratio") for size in sizes) + " |"
        for label in labels
        if label != first
    ]
    memory = [
        f"| {label} | " + " | ".join(_memory(cells.get((label, s), {})) for s in sizes) + " |" for label in labels
    ]
    lines += ["", "| peak memory, MB | " + " | ".join(f"{size:,}" for size in sizes) + " |"]
    lines += ["|---|" + "---|" * len(sizes), *memory]
    return "\n".join(lines)


def _speed(found: dict[str, Any]) -> str:
    lines = [_ratios(found), "", "| GEMM at the model's shapes | GFLOP/s, before and after |", "|---|---|"]
    for precision in found["best_gemm_gflops"]:
        for way in found["gemm_gflops"][0][precision]:
            values = ", ".join(f"{taken[precision][way]:.0f}" for taken in found["gemm_gflops"])
            lines.append(f"| {precision}, {way} | {values} |")
    shares = [row for row in found["rows"] if "share_of_best_gemm" in row]
    lines += ["", "| share of the best GEMM rate | pairs | whole process | scoring alone |", "|---|---|---|---|"]
    for row in shares:
        whole, alone = (f"{100 * row['share_of_best_gemm'][name]:.0f} %" for name in ("whole process", "scoring alone"))
        lines.append(f"| {row['label']} | {row['pairs']:,} | {whole} | {alone} |")
    return "\n".join(lines)


def _both(found: dict[str, Any]) -> str:
    cost = found["times_the_dearer"]
    line = (
        f"Both cost {cost['seconds']:.2f} times the dearer one as whole processes, {cost['inner']:.2f} models loaded."
    )
    return f"{_ratios(found)}\n\n{line}"


def _parity(found: dict[str, Any]) -> str:
    lines = ["| largest difference to bert-score | precision | recall | F1 | on |", "|---|---|---|---|---|"]
    for row in found["rows"]:
        values = row.get("largest_difference") or {}
        cells = " | ".join(
            f"{values[name]:.1e}" if name in values else "failed" for name in ("precision", "recall", "f1")
        )
        lines.append(f"| {row['label']} | {cells} | {row.get('device', '')} |")
    return "\n".join(lines)


def _busy(found: dict[str, Any]) -> str:
    lines = ["| beside a busy process | times the time |", "|---|---|"]
    return "\n".join([*lines, *(f"| {row['label']} | {_spread(row, 'slower')} |" for row in found["rows"])])


def _memory_growth(found: dict[str, Any]) -> str:
    lines = ["| pairs | peak, MB | above the model's own size, MB |", "|---|---|---|"]
    lines += [f"| {row['pairs']:,} | {row['peak_mb']:.0f} | {row['above_model_mb']:.0f} |" for row in found["rows"]]
    return "\n".join([*lines, "", f"Growth above the model's own size: {100 * found['growth']:.0f} %."])


def _spread(row: Row, name: str) -> str:
    values = row.get(name) or []
    if not values:
        return "failed" if row.get("failed") else ""
    middle = _number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({_number(min(values))} to {_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _memory(row: Row) -> str:
    return f"{max(row['peak_mb']):,.0f}" if row.get("peak_mb") else ""


_RENDERERS = {"speed": _speed, "both": _both, "parity": _parity, "busy": _busy, "memory": _memory_growth}

if __name__ == "__main__":
    for file in sys.argv[1:]:
        sys.stdout.write(render(json.loads(Path(file).read_text(encoding="utf-8"))))
