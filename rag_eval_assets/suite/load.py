"""Finding, reading and checking suite files; every fault becomes one ConfigurationError that names file and path."""

from __future__ import annotations

import datetime as dt
import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.automation import AUTOMATION
from rag_eval_assets.suite.models import OUT_OF_SCOPE_TYPES, Suite
from rag_eval_assets.suite.names import distinct_slugs, slug
from rag_eval_assets.suite.patterns import VARIABLE, WORDS
from rag_eval_assets.suite.targets import FROM_ENVIRONMENT

DEFAULT_SUITE = "embedded"
"""The packaged suite that needs no network and no keys."""

DATA_ENDINGS = frozenset({".csv", ".jsonl", ".ndjson", ".parquet", ".pq"})
"""What a newcomer may give in place of a suite: the file with the questions."""


@dataclass(frozen=True)
class LoadedSuite:
    """A suite together with where it came from and the names it goes by.

    Attributes:
        suite: the checked content.
        path: the file that it was read from; relative paths in it are relative to this file's folder.
        name: its name for people.
        slug: its name in asset keys, folders and job names.
        target_slugs: target name to slug.
    """

    suite: Suite
    path: Path
    name: str
    slug: str
    target_slugs: dict[str, str]

    @cached_property
    def sha256(self) -> str:
        """Hash of what is evaluated, defaults filled in; formatting, comments and what triggers a run do not count."""
        return content_hash(self.suite.model_dump(mode="json", exclude=set(AUTOMATION)))

    def resolve(self, path: str) -> Path:
        """A path of the suite file as one of this machine: relative ones start at the suite file's folder."""
        try:
            return (self.path.parent / Path(path).expanduser()).resolve()
        except (RuntimeError, OSError) as error:  # no such user behind `~`, a loop of links
            raise ConfigurationError(f"{self.path}: path {path!r} is not usable ({error})") from error

    @property
    def is_packaged(self) -> bool:
        """Whether it comes with this package."""
        return self.path in bundled_suites().values()

    @property
    def argument(self) -> str:
        """What a command calls it by: the name of a packaged suite, else its file."""
        return self.path.stem if self.is_packaged else self.path.name

    @property
    def cassette_folder(self) -> Path | None:
        """Folder of the suite's recordings; None for a packaged suite that names none."""
        named = self.suite.cache.folder
        if named is not None:
            return self.resolve(named)
        return None if self.is_packaged else self.path.with_name(f"{self.path.stem}.cassette")

    def model_folder(self, model_id: str) -> Path | None:
        """The folder that the suite names for a model, or None."""
        override = self.suite.models.get(model_id)
        return self.resolve(override.folder) if override else None


def bundled_suites() -> dict[str, Path]:
    """The packaged suites, name to file."""
    folder = Path(str(resources.files("rag_eval_assets.suite") / "bundled"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_suite(name_or_path: str) -> LoadedSuite:
    """Load a packaged suite by name, or a suite file by path.

    Raises:
        ConfigurationError: there is no such suite, or it is not valid.
    """
    bundled = bundled_suites()
    if name_or_path in bundled:
        return read_suite(bundled[name_or_path])
    path = Path(name_or_path)
    try:
        path = path.expanduser()
        found = path.is_file()
    except (
        OSError,
        RuntimeError,
    ) as error:  # no such user behind `~`, a folder that may not be entered, a name too long
        raise ConfigurationError(f"suite {name_or_path!r} cannot be read ({_first_line(error)})") from error
    if found and path.suffix.lower() in DATA_ENDINGS:
        raise ConfigurationError(
            f"{name_or_path!r} is a data file and no suite", fix=f"Make one over it: rag-eval init {name_or_path}"
        )
    if found:
        return read_suite(path)
    beside = [str(path.with_name(path.name + ending)) for ending in (".yaml", ".yml")]
    meant = [file for file in beside if Path(file).is_file()] or difflib.get_close_matches(name_or_path, bundled, n=1)
    raise ConfigurationError(
        f"suite {name_or_path!r} is neither a file nor a packaged suite",
        fix=f"Did you mean {meant[0]!r}?" if meant else f"Packaged suites: {', '.join(bundled)}",
    )


def load_suites(places: str | None = None) -> list[LoadedSuite]:
    """Every suite of `places`: names, files or folders, separated as in PATH; by default `RAG_EVAL_SUITES`.

    Raises:
        ConfigurationError: a suite is missing or invalid, or two suites have one slug.
    """
    given = os.environ.get("RAG_EVAL_SUITES", "") if places is None else places
    suites: list[LoadedSuite] = []
    for place in [part for part in given.split(os.pathsep) if part.strip()] or [DEFAULT_SUITE]:
        folder = Path(place).expanduser()
        if place not in bundled_suites() and folder.is_dir():
            files = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
            if not files:
                raise ConfigurationError(f"folder {place!r} of RAG_EVAL_SUITES holds no .yaml file")
            suites.extend(read_suite(file) for file in files)
        else:
            suites.append(load_suite(place))
    check_distinct(suites)
    return suites


def check_distinct(suites: Iterable[LoadedSuite]) -> None:
    """Raise ConfigurationError where two suites have one slug, naming both files."""
    seen: dict[str, LoadedSuite] = {}
    for suite in suites:
        other = seen.setdefault(suite.slug, suite)
        if other is not suite:
            raise ConfigurationError(
                f"suite names {other.name!r} ({other.path}) and {suite.name!r} ({suite.path}) "
                f"both become {suite.slug!r} in asset keys and folders",
                fix="Rename one of them",
            )


def read_suite(path: Path) -> LoadedSuite:
    """Read and check one suite file.

    Raises:
        ConfigurationError: unreadable, not YAML, or not a valid suite; all faults are listed.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({_first_line(error)})") from error
    return parse_suite(text, path)


def parse_suite(text: str, path: Path) -> LoadedSuite:
    """Check the content of a suite file that is to lie at `path`; nothing is read from there.

    Raises:
        ConfigurationError: not YAML, or not a valid suite; all faults are listed.
    """
    data = _parse_yaml(text, path)
    try:
        suite = Suite.model_validate(data)
    except ValidationError as error:
        faults = [_fault(details, data) for details in error.errors(include_url=False)]
        raise ConfigurationError(f"{path}: " + "; ".join(faults)) from error
    name = suite.name or path.stem
    try:
        suite_slug, target_slugs = slug(name, what="suite"), distinct_slugs(list(suite.targets), what="target")
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error.message}", fix=error.fix) from error
    return LoadedSuite(suite=suite, path=path.resolve(), name=name, slug=suite_slug, target_slugs=target_slugs)


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML's safe loader, but a key that stands twice in a mapping is an error instead of silently the last one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Not when the mapping is made: by then merges (`<<`) may have put keys of other mappings into the node.
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(getattr(key_node, "value", ""))
            if key in seen and key != "<<":
                raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return node


def _parse_yaml(text: str, path: Path) -> dict[str, Any]:
    try:
        data: Any = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" line {mark.line + 1}" if mark else ""
        raise ConfigurationError(f"{path}:{where} {error.problem or 'not YAML'}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: {_first_line(error)}") from error
    # The library lets errors through for scalars such as the date 2026-13-40, and for a thousand brackets.
    except (ValueError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: a value cannot be read ({_first_line(error)})") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path}: a suite is a mapping of keys to values", fix="See `rag-eval schema suite`")
    return {str(key): value for key, value in data.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _fault(details: ErrorDetails, data: dict[str, Any]) -> str:
    """One fault as `path: message, got value`."""
    path = _path(details["loc"], data)
    message = details["msg"]
    context = details.get("ctx", {})
    if details["type"] == "union_tag_invalid":
        return f"{path}.type: {_one_of('type', str(context['tag']), str(context['expected_tags']))}"
    if details["type"] == "union_tag_not_found":
        return f"{path}: the key 'type' is missing"
    if details["type"] == "missing":
        return f"{path}: is required"
    if details["type"] == "literal_error":
        what = "type" if details["loc"][-1] == "type" else "value"
        return f"{path}: {_one_of(what, str(details['input']), str(context['expected']))}"
    value = details["input"]
    if isinstance(value, dt.date):
        value = value.isoformat()
    pattern = context.get("pattern") if details["type"] == "string_pattern_mismatch" else None
    message = WORDS.get(str(pattern), message)
    if details["type"] == "url_secret" or pattern == VARIABLE:
        return f"{path}: {message[0].lower()}{message[1:]}"  # what stands there by mistake may be the secret itself
    shown = f", got {value!r}" if isinstance(value, str | int | float | bool) or value is None else ""
    return f"{path}: {message[0].lower()}{message[1:]}{shown}"


def _one_of(what: str, given: str, expected: str) -> str:
    if what == "type" and given in OUT_OF_SCOPE_TYPES:
        return f"type {given!r} is outside what this project evaluates"
    known = [part.strip().strip("'") for part in expected.replace(" or ", ",").split(",")]
    near = difflib.get_close_matches(given, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return f"unknown {what} {given!r} ({hint})"


_UNION_TAG_AT = {"datasets": 2, "scorers": 2, "targets": 2}
"""Where pydantic's location holds the tag of a union instead of a key, by top-level key."""

_NOT_IN_THE_FILE = frozenset({"[key]", "str", "list[str]"})
"""Pydantic's words for the key itself, and for the sides of `str | list[str]`; no suite has keys of these names."""


def _path(loc: tuple[int | str, ...], data: Any) -> str:
    """The place of a fault as a dotted path of the file; union tags, which are not in the file, are left out."""
    parts: list[str] = []
    node: Any = data
    for position, part in enumerate(loc):
        if position == _UNION_TAG_AT.get(str(loc[0])) or part in _NOT_IN_THE_FILE:
            continue
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            if part != loc[-1] or part == FROM_ENVIRONMENT:
                continue
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part}")
    return "".join(parts).lstrip(".") or "suite"
