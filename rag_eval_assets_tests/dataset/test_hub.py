"""Data sets of the hub, read by the real client from a cache on this machine, with the network switched off.

The client reads its settings when it is imported, so each look is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
COMMIT, NEWER = "a1" * 20, "b2" * 20
SUITE = """
datasets: [{{huggingface: somebody/questions, revision: {revision}, split: test}}]
corpus: {{source: sample}}
targets: {{pipeline: {{type: embedded}}}}
scorers: [{{type: sentence_cosine}}]
"""
LOOK = """
import json, sys
from pathlib import Path
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import read_suite

try:
    examples = load_examples(read_suite(Path(sys.argv[1])))
except ConfigurationError as error:
    print(json.dumps({"error": str(error)}))
else:
    questions = examples.table.column("question").to_pylist()
    print(json.dumps({"questions": questions, "ids": examples.table.column("example_id").to_pylist(),
                      "name": examples.name, "split": examples.split, "revision": examples.revision}))
"""


def cache_revision(home: Path, commit: str, shards: dict[str, list[str]], ref: str | None = "main") -> None:
    """Lay a revision of somebody/questions into the hub's cache as the client does: blobs, links, a reference."""
    repository = home / "hub" / "datasets--somebody--questions"
    (repository / "blobs").mkdir(parents=True, exist_ok=True)
    for name, questions in shards.items():
        blob = repository / "blobs" / f"{commit}-{name.replace('/', '-')}"
        pq.write_table(pa.table({"question": questions}), blob)
        link = repository / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    if ref is not None:
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / ref).write_text(commit)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "hf"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "hub.lock.json"


def look(home: Path, revision: str = "unverified") -> dict[str, Any]:
    suite = home.parent / "hub.yaml"
    suite.write_text(SUITE.format(revision=revision))
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_"))}
    environment = {**kept, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", LOOK, str(suite)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_warm_cache_is_enough_and_the_revision_is_kept_in_a_lock_file(home: Path, lock: Path) -> None:
    shards = {"data/test-00001-of-00002.parquet": ["b"], "data/test-00000-of-00002.parquet": ["a"]}
    cache_revision(home, COMMIT, {**shards, "data/train-00000-of-00001.parquet": ["x"]})
    found = look(home)
    assert found["questions"] == ["a", "b"]
    assert len(set(found["ids"])) == 2
    assert (found["name"], found["split"], found["revision"]) == ("somebody/questions", "test", COMMIT)
    assert json.loads(lock.read_text()) == {"somebody/questions": COMMIT}
    # The branch moves on; the lock file holds.
    cache_revision(home, NEWER, {"data/test-00000-of-00001.parquet": ["c"]})
    assert look(home) == found
    lock.unlink()
    assert look(home)["questions"] == ["c"]


def test_a_lock_file_keeps_what_it_says_of_other_data_sets(home: Path, lock: Path) -> None:
    cache_revision(home, COMMIT, {"test-00000-of-00001.parquet": ["a"]})
    lock.write_text(json.dumps({"another/one": NEWER}))
    assert look(home)["questions"] == ["a"]
    assert json.loads(lock.read_text()) == {"another/one": NEWER, "somebody/questions": COMMIT}


@pytest.mark.parametrize("content", ["", "[1]", '{"somebody/questions": '])
def test_a_damaged_lock_file_is_named_instead_of_resolved_anew(home: Path, lock: Path, content: str) -> None:
    cache_revision(home, COMMIT, {"test-00000-of-00001.parquet": ["a"]})
    lock.write_text(content)
    assert look(home)["error"].startswith(f"lock file '{lock}' cannot be read (")
    assert lock.read_text() == content


def test_an_exact_revision_needs_no_reference_and_no_lock_file(home: Path, lock: Path) -> None:
    cache_revision(home, COMMIT, {"data/test-00000-of-00001.parquet": ["a"]}, ref=None)
    found = look(home, COMMIT)
    assert (found["questions"], found["revision"]) == (["a"], COMMIT)
    assert not lock.exists()


def test_a_tag_is_reported_as_the_commit_that_it_stands_for(home: Path) -> None:
    cache_revision(home, COMMIT, {"data/test-00000-of-00001.parquet": ["a"]}, ref="v1.0")
    assert look(home, "v1.0")["revision"] == COMMIT


def test_an_empty_cache_is_one_line_with_the_data_set_the_revision_and_three_ways(home: Path, lock: Path) -> None:
    error = look(home, COMMIT)["error"]
    assert error.startswith(
        f"split 'test' of data set 'somebody/questions' at revision '{COMMIT}' cannot be had from the hub ("
    )
    assert all(way in error for way in ("name it with 'file:'", "name its folder with HF_HOME", "HF_HUB_OFFLINE unset"))
    assert "\n" not in error
    assert "'unverified'" in look(home)["error"]
    assert not lock.exists()


def test_a_split_that_is_not_there_is_named(home: Path) -> None:
    cache_revision(home, COMMIT, {"data/train-00000-of-00001.parquet": ["a"]})
    assert f"at revision '{COMMIT}' has no parquet file of split 'test'" in look(home)["error"]


@pytest.mark.parametrize("fingerprint", ["", "-0a1b2c3d4e5f6071"])
def test_a_cache_with_only_some_of_the_files_is_not_taken_for_the_whole(
    home: Path, lock: Path, fingerprint: str
) -> None:
    names = [f"data/test-0000{number}-of-00003{fingerprint}.parquet" for number in (1, 0)]
    cache_revision(home, COMMIT, {names[0]: ["b"], names[1]: ["a"]})
    assert "of the 3 files of split 'test' 2 are in the cache" in look(home)["error"]
    assert not lock.exists()
