"""Which recordings a run uses, by who started it, what the suite says, and what the run's own configuration says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.recording.modes import Mode, Modes
from rag_eval_assets.suite.load import LoadedSuite, read_suite


def suite(folder: Path, **cache: Any) -> LoadedSuite:
    content = {
        "datasets": [{"file": "rows.jsonl"}],
        "targets": {"echo": {"type": "shell", "command": ["cat"]}},
        "scorers": [{"type": "similarity", "url": "http://127.0.0.1:1/v1", "model": "m"}],
        "cache": cache,
    }
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(content))
    return read_suite(path)


def test_schedules_sensors_ui_and_backfills_ask_the_target_and_reuse_embeddings(tmp_path: Path) -> None:
    assert EvaluationResource().modes(suite(tmp_path)) == Modes(Mode.LIVE, Mode.AUTO)


def test_a_suite_may_say_otherwise_and_a_run_has_the_last_word(tmp_path: Path) -> None:
    said = suite(tmp_path, target="auto", embeddings=False)  # YAML's `off`
    assert EvaluationResource().modes(said) == Modes(Mode.AUTO, Mode.OFF)
    assert EvaluationResource(cache="replay").modes(said) == Modes(Mode.REPLAY, Mode.REPLAY)
    assert EvaluationResource(cache_target="live").modes(said) == Modes(Mode.LIVE, Mode.OFF)


def test_an_unknown_mode_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"evaluation\.cache is 'replya'\. Did you mean 'replay'\?"):
        EvaluationResource(cache="replya").modes(suite(tmp_path))
