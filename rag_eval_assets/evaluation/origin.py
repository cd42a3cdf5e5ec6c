"""What a report and its tables were made from: suite file, releases, revision; enough to run the same again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.report.host import package_versions
from rag_eval_assets.report.schema_origin import Origin
from rag_eval_assets.settings import Settings
from rag_eval_assets.storage.store import made_by_of
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.names import SAMPLE_SUFFIX
from rag_eval_assets.tables import EVAL_EXAMPLES

LEFT_OUT = "<left out: path of a machine>"
"""Stands where a suite names an absolute path: a report names no folder of anybody's machine."""

_PATH_KEYS = frozenset({"file", "folder", "path", "directory", "cwd"})
_ABSOLUTE = re.compile(r"[/~\\]|[A-Za-z]:[/\\]|file:")
# Elsewhere a leading slash may be a JSON pointer.
_FOLDER = re.compile(
    r"~|[A-Za-z]:\\|\\\\|file:|/(?:home|Users|root|tmp|var|opt|srv|mnt|media|usr|etc|data|private|work|workspace)/"
)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_REVISION = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def origin(suite: LoadedSuite, limit: int | None) -> Origin:
    """What a report says of the suite that it was made with."""
    return Origin(
        suite=suite.name,
        suite_file=suite.path.name,
        bundled=suite.is_packaged,
        suite_sha256=suite.sha256,
        git_revision=git_revision(suite),
        limit=limit,
        settings=_publishable(suite.suite.model_dump(mode="json")),
    )


def made_by(suite: LoadedSuite) -> dict[str, Any]:
    """What the footer of a table says of suite and releases; equal for all tables of a run."""
    return {
        "suite": suite.name,
        "suite_sha256": suite.sha256,
        "git_revision": git_revision(suite),
        "packages": package_versions(),
    }


def require_own_tables(tables: Path, suite: LoadedSuite) -> None:
    """Raise ConfigurationError where another suite's tables lie in the folder that this one's go to.

    Different names can have one slug, and who runs one suite at a time loads none that `check_distinct` could compare.
    Looks at the newest table of examples, in a folder of the whole evaluation and of samples.
    """
    for namespace in (suite.slug, suite.slug + SAMPLE_SUFFIX):
        folder = tables / namespace
        newest = max(folder.glob(f"{EVAL_EXAMPLES.name}/run_date=*/*.parquet"), default=None)
        owner = None if newest is None else made_by_of(newest).get("suite")
        if owner not in (None, suite.name):
            raise ConfigurationError(
                f"suite {suite.name!r} ({suite.path.name}) keeps its tables in {folder}, where those of suite "
                f"{owner!r} lie",
                fix="Give this suite another 'name', or another RAG_EVAL_HOME; if it is the same suite under a new "
                f"name, keep the old one with 'name: {owner}'",
            )


def git_revision(suite: LoadedSuite) -> str | None:
    """Commit of the checkout that the suite file lies in: `RAG_EVAL_GIT_REVISION`, else as `.git` says.

    None where there is neither, and for a suite of an installed package: a checkout around a virtual environment is
    not its own. Changes that are not committed cannot be seen; `suite_sha256` shows those of the suite file.
    """
    given = Settings.from_environment().git_revision
    if given or "site-packages" in suite.path.parts:
        return given
    for folder in suite.path.parents:
        try:
            if (folder / ".git").exists():
                return _head(folder / ".git")
        except OSError:
            return None
    return None


def _head(git: Path) -> str | None:
    """The commit that HEAD names (gitrepository-layout(5)); no program is started for it."""
    if git.is_file():  # a further worktree, or a submodule
        git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    common = git / "commondir"
    shared = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if head.startswith("ref:"):
        name = head.removeprefix("ref:").strip()
        loose = next((folder / name for folder in (git, shared) if (folder / name).is_file()), None)
        head = loose.read_text(encoding="utf-8").strip() if loose else _packed(shared / "packed-refs", name)
    return head if _REVISION.fullmatch(head) else None


def _packed(path: Path, name: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")


def _publishable(value: Any, key: str = "") -> Any:
    """A suite's settings without absolute paths and without names and passwords in URLs."""
    if isinstance(value, dict):
        return {name: _publishable(part, name) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_publishable(part, key) for part in cast("list[Any]", value)]
    if isinstance(value, str):
        absolute = _ABSOLUTE if key in _PATH_KEYS else _FOLDER
        return LEFT_OUT if absolute.match(value) else _USER_IN_URL.sub("", value)
    return value
