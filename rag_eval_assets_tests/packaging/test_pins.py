"""What pyproject.toml and constraints.txt promise about releases, compared with what is installed here."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {extra: [Requirement(line) for line in lines] for extra, lines in PROJECT["optional-dependencies"].items()}
EVERYTHING = [*DECLARED, *EXTRAS["offline"], *EXTRAS["dev"]]

# pip and setuptools come with the interpreter; the accelerator libraries are fixed by torch's own wheel.
UNPINNED = re.compile(r"(pip|setuptools|triton|nvidia-.*|cuda-.*)")


def constraint_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def constraints() -> dict[str, str]:
    pins = [line.split("==") for line in constraint_lines()]
    return {canonicalize_name(name): release for name, release in pins}


def pulled_in(requirements: list[Requirement]) -> dict[str, str]:
    """Name and installed release of every distribution that the requirements bring here, directly or not."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in requirements]
    while waiting:
        requirement, asked_extra = waiting.pop()
        environment = {**default_environment(), "extra": asked_extra}
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            distribution = metadata.distribution(name)  # raises, naming it, where it is not installed
            found[name] = distribution.version
            waiting += [(Requirement(line), extra) for line in distribution.requires or []]
    return found


def test_every_constraint_is_an_exact_release() -> None:
    for line in constraint_lines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line), line


def test_constraints_are_in_the_order_of_pip_freeze_and_name_nothing_twice() -> None:
    names = [line.split("==")[0].lower() for line in constraint_lines()]
    assert names == sorted(names)
    assert len({canonicalize_name(name) for name in names}) == len(names)


def test_every_constraint_is_what_is_installed() -> None:
    installed = {name: Version(metadata.version(name)).public for name in constraints()}
    assert installed == constraints()


def test_everything_that_the_package_pulls_in_is_constrained() -> None:
    pulled = {name for name in pulled_in(EVERYTHING) if not UNPINNED.fullmatch(name)}
    assert pulled - constraints().keys() == set()


def test_nothing_is_constrained_that_the_package_does_not_pull_in() -> None:
    assert constraints().keys() - pulled_in(EVERYTHING).keys() == set()


@pytest.mark.parametrize("requirement", EVERYTHING, ids=lambda requirement: requirement.name)
def test_each_declared_range_admits_the_constrained_release(requirement: Requirement) -> None:
    pin = constraints()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin), f"{requirement} excludes {pin}"


@pytest.mark.parametrize("name", ["bert-score", "sentence-transformers", "dagster", "dagster-aws", "dagster-webserver"])
def test_packages_that_numbers_or_compatibility_rest_on_are_pinned_in_the_project_itself(name: str) -> None:
    (requirement,) = [requirement for requirement in DECLARED if requirement.name == name]
    assert str(requirement.specifier) == f"=={constraints()[name]}"


def test_the_dagster_family_is_one_release() -> None:
    family = {name: Version(pin) for name, pin in constraints().items() if name.startswith("dagster")}
    core = family["dagster"]
    library = Version(f"0.{core.minor + 16}.{core.micro}")
    assert {"dagster-aws", "dagster-k8s", "dagster-webserver", "dagster-graphql"} <= family.keys()
    assert {name: release for name, release in family.items() if release not in (core, library)} == {}
    assert family["dagster-aws"] == library == Version("0.29.27")
    assert family["dagster-webserver"] == core == Version("1.13.27")


def test_torch_has_no_local_part() -> None:
    assert constraints()["torch"] == "2.13.0"
    assert "+" not in "".join(constraint_lines())


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "Makefile", ".ci/run"])
def test_packages_come_from_whatever_registry_the_machine_is_set_up_for(name: str) -> None:
    text = (ROOT / name).read_text()
    assert re.findall(r"https?:|file:|git\+|index-url|find-links|trusted-host|@ ", text) == []
