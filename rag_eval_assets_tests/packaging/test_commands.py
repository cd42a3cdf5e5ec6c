"""The Makefile, the CI script and the licence: what a stranger with a fresh clone meets first."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rag_eval_assets_tests.servers.programs import find_program

ROOT = Path(__file__).parents[2]
INSTALL = ".ci/install-debian-packages"
LINT = ["ruff check", "ruff format --check", "pyright --pythonpath .venv/bin/python"]


def make(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # What an outer `make test` hands down must not decide what the inner one does.
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON")
    inherited = {name: value for name, value in os.environ.items() if name not in outer}
    command = [find_program("make"), *arguments]
    return subprocess.run(
        command, cwd=folder, env={**inherited, **variables}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder, with a space in its path, that holds the files which the installation depends on."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def pretend_installed(folder: Path, *stamps: str) -> None:
    environment = folder / ".venv"
    environment.mkdir(exist_ok=True)
    if not (environment / ".made-in").exists():
        (environment / ".made-in").write_text(f"{folder.resolve()}\n")
    for stamp in stamps:
        (environment / stamp).touch()


def planned(folder: Path, target: str) -> str:
    result = make(folder, "--dry-run", target)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        ("demo", ["rag-eval run"]),
        ("test", [INSTALL, *LINT, "python -m pytest -n 4 --dist loadfile --no-loadscope-reorder"]),
        ("lint", LINT),
        ("ui", ["rag-eval ui"]),
        ("bench", ["python -m benchmarks.scoring --sizes 16 64 250 1000 4000 --out .rag-eval/benchmarks/results.json"]),
    ],
)
def test_a_target_runs_its_commands_in_order_and_nothing_else_once_installed(
    checkout: Path, target: str, commands: list[str]
) -> None:
    pretend_installed(checkout, ".installed-run", ".installed-dev")
    wanted = [command if command == INSTALL else f".venv/bin/{command}" for command in commands]
    plan = re.sub(r" & types=.*; wait \$types$", "", planned(checkout, target), flags=re.MULTILINE)
    assert plan.splitlines() == wanted


def test_what_tests_import_is_compiled_once_and_a_fault_of_types_stops_the_tests(checkout: Path) -> None:
    pretend_installed(checkout, ".installed-run", ".installed-dev")
    told = checkout / "told"
    for name, line in (("ruff", "exit 0"), ("pyright", 'exit "${TYPES:-0}"'), ("python", f'echo "$*" >>"{told}"')):
        program = checkout / ".venv" / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    (checkout / ".ci").mkdir()
    (checkout / INSTALL).symlink_to("/bin/true")
    assert make(checkout, "test").returncode == 0
    first = told.read_text().splitlines()
    assert [line.split()[:3] for line in first[-2:]] == [["-m", "pytest", "--collect-only"], ["-m", "pytest", "-n"]]
    assert make(checkout, "test").returncode == 0
    assert told.read_text().splitlines() == [*first, first[-1]]
    assert make(checkout, "test", TYPES="1").returncode != 0
    assert told.read_text().splitlines() == [*first, first[-1]]


def test_demo_in_a_fresh_clone_makes_the_environment_and_installs_the_offline_extra_alone(checkout: Path) -> None:
    plan = planned(checkout, "demo")
    assert "python3 -m venv" in plan
    assert "-c constraints.txt -e '.[offline]'" in plan
    assert "[offline,dev]" not in plan


def test_tests_installed_after_the_demo_add_only_what_is_missing(checkout: Path) -> None:
    pretend_installed(checkout, ".installed-run")
    plan = planned(checkout, "test")
    assert "-m venv" not in plan
    assert plan.count("pip install") == 1
    assert "-c constraints.txt -e '.[offline,dev]'" in plan


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
@pytest.mark.parametrize("target", ["demo", "test"])
def test_a_changed_pin_installs_again(checkout: Path, name: str, target: str) -> None:
    pretend_installed(checkout, ".installed-run", ".installed-dev")
    later = (checkout / ".venv" / ".installed-dev").stat().st_mtime + 5
    os.utime(checkout / name, (later, later))
    assert planned(checkout, target).count("pip install") == 1


def test_an_environment_copied_with_its_checkout_is_made_anew(checkout: Path, tmp_path: Path) -> None:
    pretend_installed(checkout, ".installed-run", ".installed-dev")
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy)
    plan = planned(copy, "demo")
    assert "python3 -m venv --clear" in plan
    assert "pip install" in plan


def test_an_interpreter_that_is_too_old_is_refused_in_one_line(checkout: Path, tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    result = make(checkout, "demo", f"PYTHON={old}")
    assert result.returncode != 0
    assert f"Python 3.11 or newer is needed and '{old}' is not" in result.stderr
    assert not (checkout / ".venv").exists()


def test_an_interpreter_without_venv_is_refused_with_what_to_install(checkout: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexec "{sys.executable}" "$@"\n')
    bare.chmod(0o755)
    result = make(checkout, "demo", f"PYTHON={bare}")
    assert result.returncode != 0
    assert "apt-get install python3-venv" in result.stderr
    assert not (checkout / ".venv").exists()


def test_clean_leaves_the_sources_and_removes_what_was_made(checkout: Path) -> None:
    pretend_installed(checkout, ".installed-run")
    (checkout / ".rag-eval").mkdir()
    for package in ("rag_eval_assets", "rag_eval_assets_tests"):
        (checkout / package / "__pycache__").mkdir(parents=True)
        (checkout / package / "kept.py").touch()
    assert make(checkout, "clean").returncode == 0
    assert sorted(path.relative_to(checkout).as_posix() for path in checkout.rglob("*") if path.is_file()) == [
        "Makefile",
        "constraints.txt",
        "pyproject.toml",
        "rag_eval_assets/kept.py",
        "rag_eval_assets_tests/kept.py",
    ]


def test_help_lists_every_target(checkout: Path) -> None:
    listed = re.findall(r"make (\w+)", make(checkout).stdout)
    assert set(listed) == {"help", "demo", "test", "soak", "lint", "ui", "bench", "clean"}


def test_every_make_command_of_the_readme_is_a_target() -> None:
    commands = set(re.findall(r"(?m)(?:^|`)\s*make ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= commands
    assert commands <= {"help", "demo", "test", "soak", "lint", "ui", "bench", "clean"}


def test_ci_runs_the_test_target_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR
    assert script.read_text().splitlines() == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")/.."',
        "exec make test",
    ]


def test_the_licence_is_the_unchanged_apache_2_0_text() -> None:
    # The digest of LICENSE-2.0.txt as the Apache Software Foundation publishes it.
    published = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == published
