"""Writes a report under its key: Parquet and page first, JSON last, each whole or not at all, never over another."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.report.examples import METRICS_KEY, row_metrics
from rag_eval_assets.report.html import report_html
from rag_eval_assets.report.read import read_report
from rag_eval_assets.report.schema import ExamplesTable, Report
from rag_eval_assets.storage.atomic import sync
from rag_eval_assets.storage.parquet import write_parquet
from rag_eval_assets.storage.s3_names import ENV_PATTERN, ENV_RULE

MADE_FROM_KEY = "rag_eval"
"""Key of the Parquet footer that says what the per-example table was made from, as JSON."""


@dataclass(frozen=True)
class WrittenReport:
    """A report that lies on the disk.

    Attributes:
        report: as written, with its `examples_table`.
        json_path, html_path, parquet_path: the files.
        key: of all three, without the ending, relative to the report folder.
        sha256: of the JSON file.
        bytes: size of the JSON file.
        uri: where the JSON was delivered to; None where it stays on the disk.
        problem: what kept it from being delivered to its bucket.
    """

    report: Report
    json_path: Path
    html_path: Path
    parquet_path: Path
    key: str
    sha256: str
    bytes: int
    uri: str | None = None
    problem: str | None = None

    @property
    def place(self) -> str:
        """Path or URI of the JSON."""
        return self.uri or str(self.json_path)

    @property
    def page(self) -> str:
        """Path or URI of the page."""
        return f"{self.uri.removesuffix('.json')}.html" if self.uri else str(self.html_path)


def report_key(env: str, run_date: str, run_id: str) -> str:
    """Where a report lies: `<env>/eval-runs/<yyyy>/<mm>/<dd>/<run_id>`, without an ending.

    Args:
        env: label of the environment, `^[a-z0-9][a-z0-9-]{0,31}$`.
        run_date: YYYY-MM-DD.
        run_id: a UUID in its canonical form.

    Raises:
        ConfigurationError: a part is not of that form.
    """
    if not re.fullmatch(ENV_PATTERN.strip("^$"), env):
        raise ConfigurationError(f"report.env is {env!r}", fix=f"Use {ENV_RULE}")
    try:
        day = date.fromisoformat(run_date)
        same = day.isoformat() == run_date and str(uuid.UUID(run_id)) == run_id
    except ValueError:
        same = False
    if not same:
        raise ConfigurationError(
            f"no report can be named by run date {run_date!r} and run id {run_id!r}",
            fix="Give a date as YYYY-MM-DD and a UUID in lower-case canonical form",
        )
    return f"{env}/eval-runs/{run_date.replace('-', '/')}/{run_id}"


def report_bytes(report: Report) -> bytes:
    """The report as the bytes of its file."""
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def write_report(root: Path, report: Report, rows: pa.Table) -> WrittenReport:
    """Write `<key>.parquet`, `<key>.html` and at last `<key>.json` under `root`: who finds the JSON finds the others.

    A written report is never replaced. Writing it again, as the retry of a step does, changes nothing and gives what
    already lies there, also where the run's facts (times, seconds) differ by now.

    Args:
        root: the report folder.
        report: from `build.build_report`.
        rows: the per-example table that it was built from.

    Raises:
        ConfigurationError: environment, run date or run id are of no valid form.
        InfrastructureError: a file of that run id exists with other content, or the disk refuses.
    """
    key = report_key(report.run.env, report.run.run_date, report.run_id)
    json_path, html_path, parquet_path = (root / f"{key}.{ending}" for ending in ("json", "html", "parquet"))
    footer = {METRICS_KEY: json.dumps(row_metrics(rows)), MADE_FROM_KEY: json.dumps(_made_from(report))}
    try:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        table_sha256 = _place(parquet_path, lambda temporary: write_parquet(temporary, rows, footer))
        table = ExamplesTable(key=f"{key}.parquet", sha256=table_sha256)
        final = report.model_copy(update={"examples_table": table})
        content = report_bytes(final)
        if json_path.exists():
            final, content = _same_content(final, json_path)
        if not html_path.exists():
            page = report_html(final, rows).encode("utf-8")
            _place(html_path, lambda temporary: _write_bytes(temporary, page))
        sha256 = _place(json_path, lambda temporary: _write_bytes(temporary, content))
    except OSError as error:
        raise InfrastructureError(f"report {key!r} cannot be written ({error.strerror or error})") from error
    return WrittenReport(final, json_path, html_path, parquet_path, key, sha256, len(content))


def _made_from(report: Report) -> dict[str, Any]:
    """Provenance of the per-example table; nothing in it differs between two runs of equal inputs."""
    values = report.to_json()
    origin: dict[str, Any] = values["run"]["origin"] or {}
    return {
        "suite": report.suite,
        "target": report.target,
        "suite_sha256": origin.get("suite_sha256"),
        "git_revision": origin.get("git_revision"),
        "dataset_fingerprint": report.dataset.fingerprint,
        "corpus_fingerprint": report.corpus.fingerprint if report.corpus else None,
        "models": values["models"],
        "packages": report.run.versions,
    }


def _same_content(report: Report, path: Path) -> tuple[Report, bytes]:
    """The report that lies at `path` and its bytes; raises InfrastructureError where it has other content."""
    written = read_report(path)
    if written.content_sha256 != report.content_sha256:
        raise _conflict(path)
    return written, path.read_bytes()


def _conflict(path: Path) -> InfrastructureError:
    return InfrastructureError(
        f"{path.name!r} exists with other content, and a written report is never replaced",
        fix="Materialize the report again: each evaluation has a run id of its own",
    )


def _place(final: Path, write: Callable[[Path], None]) -> str:
    """Let `write` fill a temporary file beside `final`, give it that name unless it is taken, return its SHA-256."""
    temporary = final.with_name(f".{final.name}.{uuid.uuid4().hex}.tmp")
    try:
        write(temporary)
        sha256 = file_sha256(temporary)
        sync(temporary)
        try:
            _name_once(temporary, final)
        except FileExistsError as error:
            if file_sha256(final) != sha256:
                raise _conflict(final) from error
        sync(final.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return sha256


def _name_once(temporary: Path, final: Path) -> None:
    """Give a file its final name; a second writer of that name gets FileExistsError, where a rename would replace."""
    try:
        os.link(temporary, final)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # Some network file systems know no hard links; then the check and the rename are two steps.
        if final.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final)) from error
        temporary.rename(final)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
