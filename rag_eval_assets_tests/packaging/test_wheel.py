"""The wheel that is built from this tree: it holds every data file that the package reads, and no tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rag_eval_assets"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because setuptools leaves its build folder in the tree that it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    shutil.copytree(PACKAGE, tree / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "rag_eval_assets_tests", tree / "rag_eval_assets_tests")
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    built = subprocess.run([*command, str(folder), str(tree)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("rag_eval_assets-0.1.0-*.whl")
    return path


@pytest.fixture(scope="module")
def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def about(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read("rag_eval_assets-0.1.0.dist-info/METADATA").decode())


def test_the_wheel_holds_every_file_of_the_package(contents: set[str]) -> None:
    files = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} - contents == set()


@pytest.mark.parametrize(
    "pattern",
    ["py.typed", "orchestration/dagster.yaml", "suite/bundled/embedded.yaml", "dataset/sample/*.jsonl"],
)
def test_the_wheel_holds_the_data_that_the_package_reads(contents: set[str], pattern: str) -> None:
    assert [name for name in contents if Path(name).match(f"rag_eval_assets/{pattern}")] != []


def test_the_wheel_installs_one_package_and_no_tests(contents: set[str]) -> None:
    assert {name.split("/")[0] for name in contents} == {"rag_eval_assets", "rag_eval_assets-0.1.0.dist-info"}


def test_the_wheel_says_what_it_is(about: Message) -> None:
    assert (about["Name"], about["Version"]) == ("rag-eval-assets", "0.1.0")
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Requires-Python"] == ">=3.11"
    assert set(about.get_all("Provides-Extra", [])) == {"offline", "example", "dev"}


def test_the_wheel_installs_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        scripts = archive.read("rag_eval_assets-0.1.0.dist-info/entry_points.txt").decode()
    assert scripts.split() == ["[console_scripts]", "rag-eval", "=", "rag_eval_assets.cli.main:main"]
