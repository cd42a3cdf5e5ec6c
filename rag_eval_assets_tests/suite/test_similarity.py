"""A `similarity` scorer and the `cache` of a suite file: what is taken, and what is refused before any call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.configuration import configuration_hash
from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.suite.load import LoadedSuite, read_suite

SCORER = {"type": "similarity", "url": "https://api.example/v1", "model": "embed"}


def load(folder: Path, *scorers: dict[str, Any], **changes: Any) -> LoadedSuite:
    content = {
        "datasets": [{"file": "rows.jsonl"}],
        "targets": {"echo": {"type": "shell", "command": ["cat"]}},
        "scorers": list(scorers or [SCORER]),
        **changes,
    }
    path = folder / "s.yaml"
    path.write_text(yaml.safe_dump(content))
    return read_suite(path)


def test_url_and_model_are_all_that_is_needed(tmp_path: Path) -> None:
    suite = load(tmp_path)
    (scorer,) = suite.suite.scorers
    assert (scorer.name, scorer.threshold, scorer.batch_size, scorer.max_retries) == ("similarity", 0.8, 1, 2)
    assert (suite.suite.policy, suite.cassette_folder) == ("all_pass", tmp_path / "s.cassette")


@pytest.mark.parametrize("threshold", [-1, 0, 1, 0.95])
def test_thresholds_from_minus_one_to_one_are_taken(tmp_path: Path, threshold: float) -> None:
    assert load(tmp_path, {**SCORER, "threshold": threshold}).suite.scorers[0].threshold == threshold


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"treshold": 0.95}, r"scorers\[0\]: unknown key 'treshold' \(did you mean 'threshold'\?\)"),
        ({"threshold": 1.0000001}, r"threshold: .* got 1\.0000001"),
        ({"threshold": -1.5}, r"threshold: .* got -1\.5"),
        ({"threshold": float("nan")}, "threshold: .* got nan"),
        ({"threshold": "0.8"}, "threshold: .* got '0.8'"),
        ({"url": ""}, r"scorers\[0\]\.url: "),
        ({"url": "ftp://api.example"}, "no http or https address"),
        ({"url": "api.example/v1"}, "no http or https address"),
        ({"url": "https://api.example/v1 "}, "white space"),
        ({"model": ""}, r"scorers\[0\]\.model: "),
        ({"api_key_env": "sk-not a name"}, "api_key_env: "),
        ({"api_key": "sk-1"}, r"unknown key 'api_key' \(did you mean 'api_key_env'\?\)"),
        ({"name": "bertscore"}, "already the name of a table"),
        ({"batch_size": 0}, "batch_size: "),
        ({"references": [" "]}, r"references\[0\]: "),
    ],
)
def test_a_faulty_scorer_is_refused_with_its_field(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load(tmp_path, {**SCORER, **changes})


@pytest.mark.parametrize("url", ["https://me:pass-word@api.example/v1", "https://api.example/v1?api-key=pass-word"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="use 'api_key_env'") as raised:
        load(tmp_path, {**SCORER, "url": url})
    assert "pass-word" not in str(raised.value)


@pytest.mark.parametrize("field", ["url", "model"])
def test_url_and_model_are_required(tmp_path: Path, field: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"scorers\[0\]\.{field}: is required"):
        load(tmp_path, {name: value for name, value in SCORER.items() if name != field})


def test_two_of_the_type_need_names_of_their_own(tmp_path: Path) -> None:
    assert len(load(tmp_path, SCORER, {**SCORER, "name": "large"}).suite.scorers) == 2
    for names in (("a", "a"), (None, None)):
        with pytest.raises(ConfigurationError, match="is listed twice"):
            load(tmp_path, *[{**SCORER, **({"name": name} if name else {})} for name in names])


def test_how_calls_are_made_makes_no_table_out_of_date_and_what_scores_mean_does(tmp_path: Path) -> None:
    def hashed(**changes: Any) -> str:
        return configuration_hash(load(tmp_path, {**SCORER, **changes}), "similarity", "echo")

    how = {"api_key_env": "K", "timeout_seconds": 5, "max_retries": 0, "batch_size": 9, "usd_per_million_tokens": 1.0}
    assert {hashed(**{name: value}) for name, value in how.items()} == {hashed()}
    assert hashed(threshold=0.7) != hashed()
    assert hashed(dimensions=256) != hashed()


def test_modes_and_folder_of_the_recordings(tmp_path: Path) -> None:
    suite = load(tmp_path, cache={"target": "replay", "embeddings": False, "folder": "tapes/x"})  # YAML's `off`
    assert (suite.suite.cache.target, suite.suite.cache.embeddings) == (Mode.REPLAY, Mode.OFF)
    assert suite.cassette_folder == tmp_path / "tapes" / "x"
    with pytest.raises(ConfigurationError, match=r"cache\.target: .* got 'replayed'"):
        load(tmp_path, cache={"target": "replayed"})


@pytest.mark.parametrize("policy", ["report", "all_pass"])
def test_the_policy_can_be_said(tmp_path: Path, policy: str) -> None:
    assert load(tmp_path, run={"policy": policy}).suite.policy == policy
    assert load(tmp_path, {"type": "bertscore"}).suite.policy == "report"
