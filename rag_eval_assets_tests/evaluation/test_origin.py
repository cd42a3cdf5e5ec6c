"""What reports and tables say of the suite that they were made with, and the commit that it lies in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.origin import LEFT_OUT, git_revision, made_by, origin, require_own_tables
from rag_eval_assets.storage.store import LocalStore, Provenance, TableKey
from rag_eval_assets.suite.load import LoadedSuite, load_suite, read_suite

CONTENT = {
    "datasets": [{"file": "rows.csv"}],
    "corpus": {"source": "contexts"},
    "targets": {"pipeline": {"type": "embedded"}},
    "scorers": [{"type": "sentence_cosine"}],
}


def suite(folder: Path, **changes: object) -> LoadedSuite:
    path = folder / "mill.yaml"
    path.write_text(yaml.safe_dump({**CONTENT, **changes}))
    return read_suite(path)


def git(folder: Path, *words: str) -> str:
    options = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *options, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, no_aws) -> Path:
    folder = tmp_path / "checkout"
    (folder / "suites").mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def test_the_revision_is_that_of_the_checkout_around_the_suite(checkout: Path) -> None:
    here = suite(checkout / "suites")
    assert git_revision(here) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all")
    assert git_revision(here) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "--detach")
    assert git_revision(here) == git(checkout, "rev-parse", "HEAD")


def test_a_further_worktree_has_a_revision_of_its_own(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "other"))
    git(tmp_path / "other", "commit", "--quiet", "--allow-empty", "--message", "second")
    assert git_revision(suite(tmp_path / "other")) == git(tmp_path / "other", "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all")
    assert git_revision(suite(tmp_path / "other")) == git(tmp_path / "other", "rev-parse", "HEAD")
    assert git_revision(suite(checkout)) == git(checkout, "rev-parse", "HEAD")


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "ref: ../../etc/passwd", "no hash"])
def test_a_checkout_that_tells_no_commit_has_no_revision(checkout: Path, head: str) -> None:
    (checkout / ".git" / "HEAD").write_text(head)
    assert git_revision(suite(checkout)) is None


def test_no_checkout_no_revision_unless_the_environment_tells_one(tmp_path: Path, no_aws) -> None:
    here = suite(tmp_path)
    assert git_revision(here) is None
    no_aws.setenv("RAG_EVAL_GIT_REVISION", "0123abc")
    assert git_revision(here) == "0123abc"
    no_aws.setenv("RAG_EVAL_GIT_REVISION", "main")
    with pytest.raises(ConfigurationError, match="RAG_EVAL_GIT_REVISION is 'main'"):
        git_revision(here)


def test_a_suite_of_an_installed_package_has_not_the_revision_around_it(checkout: Path) -> None:
    installed = checkout / ".venv" / "site-packages" / "bundled"
    installed.mkdir(parents=True)
    assert git_revision(suite(installed)) is None


def test_the_origin_holds_the_settings_and_no_path_of_the_machine(checkout: Path) -> None:
    here = suite(
        checkout / "suites",
        datasets=[{"file": "../rows.csv"}, {"file": "/data/secret/rows.csv"}],
        models={"all-MiniLM-L6-v2": {"folder": "~/models"}},
        description="see https://somebody:password@example.org/page",
    )
    told = origin(here, 5)
    assert (told.suite, told.suite_file, told.bundled, told.limit) == ("mill", "mill.yaml", False, 5)
    assert told.suite_sha256 == here.sha256
    files = [entry["file"] for entry in told.settings["datasets"]]
    assert files == ["../rows.csv", LEFT_OUT]
    assert told.settings["models"] == {"all-MiniLM-L6-v2": {"folder": LEFT_OUT}}
    assert told.settings["description"] == "see https://example.org/page"
    assert str(checkout) not in told.model_dump_json()
    assert origin(load_suite("embedded"), None).bundled


def test_a_footer_names_suite_revision_and_releases_and_is_equal_for_equal_runs(checkout: Path) -> None:
    here = suite(checkout)
    told = made_by(here)
    assert told == made_by(here)
    assert told["git_revision"] == git(checkout, "rev-parse", "HEAD")
    assert {"rag-eval-assets", "torch", "pyarrow"} <= told["packages"].keys()


@pytest.mark.parametrize("namespace", ["bike_shop", "bike_shop~sample"])
def test_tables_of_another_suite_with_the_same_slug_are_not_replaced(tmp_path: Path, no_aws, namespace: str) -> None:
    first, second = suite(tmp_path, name="bike-shop"), suite(tmp_path, name="bike_shop")
    require_own_tables(tmp_path / "tables", first)
    key = TableKey(namespace, "eval_examples", "2026-03-01")
    LocalStore(tmp_path / "tables", made_by(first)).write(key, pa.table({"a": [1]}), Provenance("1"))
    require_own_tables(tmp_path / "tables", first)
    with pytest.raises(ConfigurationError) as caught:
        require_own_tables(tmp_path / "tables", second)
    assert str(caught.value) == (
        f"suite 'bike_shop' (mill.yaml) keeps its tables in {tmp_path}/tables/{namespace}, where those of suite "
        "'bike-shop' lie. Give this suite another 'name', or another RAG_EVAL_HOME; if it is the same suite under a "
        "new name, keep the old one with 'name: bike-shop'"
    )


def test_tables_that_name_no_suite_or_cannot_be_read_are_nobodys(tmp_path: Path, no_aws) -> None:
    here = suite(tmp_path)
    for date, content in (("2026-03-01", b"no parquet"), ("2026-03-02", None)):
        key = TableKey("mill", "eval_examples", date)
        path = tmp_path / "tables" / key.path
        path.parent.mkdir(parents=True)
        if content is not None:
            path.write_bytes(content)
        else:
            LocalStore(tmp_path / "tables").write(key, pa.table({"a": [1]}), Provenance("1"))
        require_own_tables(tmp_path / "tables", here)
