"""Running the evaluation of a report again: the same suite, target, run date and limit, as the report tells them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.origin import LEFT_OUT
from rag_eval_assets.report.read import load_report, parse_report
from rag_eval_assets.report.schema_origin import Origin
from rag_eval_assets.suite.load import LoadedSuite, bundled_suites, load_suite
from rag_eval_assets.suite.models import Suite
from rag_eval_assets.suite.names import distinct_slugs, slug


@dataclass(frozen=True)
class Rerun:
    """What to run again.

    Attributes:
        before: the report as plain JSON values.
        suite: the suite as it was then, or the given one as it is now.
        target, run_date, limit: as they were then.
    """

    before: dict[str, Any]
    suite: LoadedSuite
    target: str
    run_date: str
    limit: int | None


def rerun_of(file: str, suite: str | None) -> Rerun:
    """What the report in `file` tells to run.

    Args:
        file: path or URI of a report.
        suite: a suite to take in place of the one that the report was made with.

    Raises:
        ConfigurationError: it is no report, or one that does not tell its suite, or tells it in part.
    """
    before = load_report(file)
    report = parse_report(before, file)
    origin = report.run.origin
    if origin is None:
        raise ConfigurationError(f"{file!r} does not tell which suite it was made with", fix="Run the suite itself")
    loaded = load_suite(suite) if suite else _recorded(file, origin)
    return Rerun(before, loaded, report.target, report.run.run_date, origin.limit)


def _recorded(file: str, origin: Origin) -> LoadedSuite:
    """The suite that stands in a report; its relative paths begin at the current folder."""
    if LEFT_OUT in str(origin.settings):
        raise ConfigurationError(
            f"{file!r} leaves out paths of the machine that it was made on",
            fix=f"Give the suite as well: rag-eval run {origin.suite_file} --from-report ...",
        )
    bundled = {path.name: path for path in bundled_suites().values()}
    path = bundled[origin.suite_file] if origin.bundled and origin.suite_file in bundled else Path(origin.suite_file)
    try:
        suite = Suite.model_validate(_as_in_a_file(origin.settings))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"{file!r} was made with a suite that this release does not know: {where}: {first['msg']}",
            fix="Run it with the release that the report names under run.versions",
        ) from error
    return LoadedSuite(
        suite=suite,
        path=path.resolve(),
        name=origin.suite,
        slug=slug(origin.suite, what="suite"),
        target_slugs=distinct_slugs(list(suite.targets), what="target"),
    )


def _as_in_a_file(settings: dict[str, Any]) -> dict[str, Any]:
    """A report fills in what its suite does not say, but a column that is null in a suite file says something."""
    datasets: list[dict[str, Any]] = [dict(given) for given in settings.get("datasets", [])]
    for given in datasets:
        columns: dict[str, Any] = given.get("columns") or {}
        given["columns"] = {role: name for role, name in columns.items() if name is not None}
    return {**settings, "datasets": datasets}
