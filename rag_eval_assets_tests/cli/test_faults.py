"""Every fault of configuration: one line on stderr, exit code 2, and nothing written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Setup = Callable[[Any, Path], tuple[str, ...]]


def unknown_key(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(scorrers=[]),)


def no_such_suite(place: Any, weights: Path) -> tuple[str, ...]:
    return ("embeded",)


def not_yaml(place: Any, weights: Path) -> tuple[str, ...]:
    (place.folder / "broken.yaml").write_text("datasets: [\n")
    return ("broken.yaml",)


def missing_file(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(datasets=[{"file": "nowhere.csv"}]),)


def wrong_column(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(datasets=[{"file": "rows.jsonl", "columns": {"question": "prompt"}}]),)


def unreadable_parquet(place: Any, weights: Path) -> tuple[str, ...]:
    (place.folder / "rows.parquet").write_bytes(b"PAR1 this is no parquet file PAR1")
    return (place.suite(datasets=[{"file": "rows.parquet"}]),)


def missing_model(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(scorers=[{"type": "bertscore", "model": "bert-base-uncased"}]),)


def missing_model_folder(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(models={"all-MiniLM-L6-v2": {"folder": "models/minilm"}}),)


def wrong_weights(place: Any, weights: Path) -> tuple[str, ...]:
    folder = place.folder / "tampered"
    shutil.copytree(weights, folder, ignore=shutil.ignore_patterns("model.safetensors"))
    (folder / "model.safetensors").write_bytes(b"other weights")
    return (place.suite(models={"all-MiniLM-L6-v2": {"folder": "tampered"}}),)


def bad_date(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(), "--run-date", "2026-13-01")


def unknown_target(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(), "--target", "pipline")


def bad_limit(place: Any, weights: Path) -> tuple[str, ...]:
    return (place.suite(), "--limit", "0")


FAULTS: dict[Setup, tuple[str, ...]] = {
    unknown_key: ("harbour.yaml", "'scorrers'", "did you mean 'scorers'?"),
    no_such_suite: ("'embeded'", "Did you mean 'embedded'?"),
    not_yaml: ("broken.yaml", "line 2"),
    missing_file: ("nowhere.csv", "does not exist"),
    wrong_column: ("'prompt'", "columns.question", "'question', 'answer', 'context'"),
    unreadable_parquet: ("rows.parquet", "cannot be read as parquet"),
    missing_model: ("'bert-base-uncased'", "is not available", "RAG_EVAL_MODELS_DIR"),
    missing_model_folder: ("models/minilm does not exist",),
    wrong_weights: ("'all-MiniLM-L6-v2'", "tampered/model.safetensors", "SHA-256", "expected 53aa5117"),
    bad_date: ("--run-date", "'2026-13-01'", "YYYY-MM-DD"),
    unknown_target: ("'pipline'", "Did you mean 'pipeline'?"),
    bad_limit: ("--limit is 0",),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_one_line_that_says_where_and_nothing_is_written(fault: Setup, place, weights: Path) -> None:
    arguments = fault(place, weights)
    before = sorted(place.folder.rglob("*"))
    process = place.run("run", *arguments)
    assert process.returncode == 2
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")
    for part in FAULTS[fault]:
        assert part in line
    assert sorted(place.folder.rglob("*")) == before, "neither a home nor anything else was made"


def test_an_unknown_executor_is_refused_before_anything_is_written(place, weights: Path) -> None:
    process = place.run("run", place.suite(), RAG_EVAL_EXECUTOR="mulitprocess")
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert line == "error: RAG_EVAL_EXECUTOR is 'mulitprocess'. Use one of in_process, multiprocess, k8s"
    assert not place.home.exists()


def test_a_path_in_an_error_is_neither_wrapped_nor_taken_for_markup_nor_able_to_steer_the_terminal(place) -> None:
    name = f"{'a folder [red] ' * 8}:warning:\x1b[2J.yaml"
    process = place.run("run", name, COLUMNS="40")
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert f"{'a folder [red] ' * 8}:warning:" in line
    assert "\x1b" not in line


def test_a_usage_error_goes_to_stderr_with_the_option_that_may_be_meant(place) -> None:
    process = place.run("run", "--limt", "3")
    assert (process.returncode, process.stdout) == (2, "")
    assert "--limit" in process.stderr
    assert "rag-eval run --help" in process.stderr
