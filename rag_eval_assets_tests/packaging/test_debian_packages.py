"""What pip cannot install: installed where that may be done, else told; missing in CI fails, elsewhere skips."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rag_eval_assets_tests.servers.programs import find_program

SCRIPT = Path(__file__).parents[2] / ".ci" / "install-debian-packages"
TOOLS = ("sh", "dirname", "env", "mktemp", "rm", "tail", "touch", "chmod", "true")


class Machine:
    """A PATH of little more than the shell, with programs that behave as told and write down their arguments."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def add(self, name: str, does: str) -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.log}"\n{does}\n')
        path.chmod(0o755)

    def add_root(self) -> None:
        self.add("id", "echo 0")

    def run(self, **variables: str) -> str:
        """What the script says; it must end well whatever happened."""
        result = subprocess.run(
            [str(SCRIPT)], env={"PATH": str(self.bin), **variables}, capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stdout) == (0, "")
        return result.stderr

    def ran(self, name: str) -> list[str]:
        """The last words of each call of a program."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split("Timeout=20 ")[-1] for line in lines if line.startswith(f"{name} ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_is_done_where_all_is_there(machine: Machine) -> None:
    machine.add("chromium", "")
    machine.add("apt-get", "")
    assert machine.run() == ""
    assert machine.ran("apt-get") == []


def test_root_installs_and_fetches_the_lists_only_if_need_be(machine: Machine) -> None:
    machine.add_root()
    machine.add("apt-get", f'touch "{machine.bin}/chromium"; chmod +x "{machine.bin}/chromium"')
    assert machine.run() == "Installing with apt-get: chromium\n"
    assert machine.ran("apt-get") == ["install -y --no-install-recommends chromium"]
    assert machine.run() == ""


def test_an_apt_that_fails_is_told_and_fails_nothing(machine: Machine) -> None:
    machine.add_root()
    machine.add("apt-get", 'echo "E: Unable to locate package"; exit 100')
    said = machine.run()
    assert "Not installed: chromium (apt-get said: E: Unable to locate package). Tests that need it are skipped" in said
    assert [call.split()[0] for call in machine.ran("apt-get")] == ["install", "update"]
    assert "Tests that need it fail, since CI is set" in machine.run(CI="true")


def test_who_is_not_root_needs_a_sudo_that_asks_nothing(machine: Machine) -> None:
    machine.add("id", "echo 1000")
    machine.add("apt-get", "")
    assert "(that takes root)" in machine.run()
    machine.add("sudo", "exit 1")
    assert "(that takes root)" in machine.run()
    assert machine.ran("apt-get") == []
    machine.add("sudo", 'shift; exec "$@"')
    assert "Not installed" not in machine.run()
    assert machine.ran("apt-get") == ["install -y --no-install-recommends chromium"]


def test_another_system_is_told_what_is_missing(machine: Machine) -> None:
    said = machine.run()
    assert said.startswith("Not installed: chromium (there is no apt-get).")
    assert said.endswith("to install it: apt-get install chromium\n")


def test_a_program_that_is_missing_skips_a_test_and_in_ci_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert find_program("no-such-program", "sh") == shutil.which("sh")
    with pytest.raises(pytest.skip.Exception, match="apt-get install no-such-program"):
        find_program("no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install no-such-program"):
        find_program("no-such-program")
