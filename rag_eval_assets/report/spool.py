"""The spool: reports on their way to a bucket, each in a folder of its own with a note of what became of its objects.

A report is written here once, as the bytes that every attempt sends; its folder goes when all three objects lie in the
bucket. What a killed process leaves here is what `rag-eval report push` sends.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.home import Home
from rag_eval_assets.report.write import WrittenReport, file_sha256
from rag_eval_assets.storage.atomic import replace_file
from rag_eval_assets.storage.s3_names import S3Bucket

NOTE = "delivery.json"

CONTENT_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
}
"""Endings of a report's objects, in the order in which they are put: who finds the JSON finds the others."""


class State(StrEnum):
    """What is known of one object."""

    WAITING = "waiting"
    UNKNOWN = "unknown"  # an attempt was made and its outcome is not known
    DELIVERED = "delivered"


@dataclass(frozen=True)
class Parcel:
    """A report in the spool.

    Attributes:
        folder: its folder in the spool.
        run_id: of the report.
        key: of all three objects, without the ending.
        bucket: where they go.
        sha256: of each file, by ending.
        states: of each object, by ending; about `bucket`.
    """

    folder: Path
    run_id: str
    key: str
    bucket: S3Bucket
    sha256: dict[str, str]
    states: dict[str, State]

    def path(self, ending: str) -> Path:
        """The file of one object."""
        return self.folder / f"{self.key}.{ending}"

    @property
    def uri(self) -> str:
        """Where the report's JSON goes."""
        return self.bucket.uri(f"{self.key}.json")

    @property
    def delivered(self) -> bool:
        """Whether all objects lie in the bucket."""
        return all(state is State.DELIVERED for state in self.states.values())

    def to(self, bucket: S3Bucket) -> Parcel:
        """The same report for another bucket, of which nothing is known yet; credentials and addressing may change."""
        same = (bucket.name, bucket.endpoint) == (self.bucket.name, self.bucket.endpoint)
        return replace(self, bucket=bucket, states=self.states if same else dict.fromkeys(CONTENT_TYPES, State.WAITING))

    def note(self, ending: str, state: State) -> Parcel:
        """Write down what is known of one object, before anything else happens."""
        noted = replace(self, states={**self.states, ending: state})
        noted.keep()
        return noted

    def keep(self) -> None:
        """Write the note; raises InfrastructureError where the disk refuses."""
        text = json.dumps(
            {"run_id": self.run_id, "key": self.key, "bucket": asdict(self.bucket), "sha256": self.sha256}
            | {"states": self.states},
            indent=2,
        )
        replace_file(self.folder / NOTE, lambda path: _write(path, f"{text}\n"))

    def remove(self) -> None:
        """Delete the report from the spool."""
        shutil.rmtree(self.folder, ignore_errors=True)


def folder_of(home: Home, run_id: str) -> Path:
    """Folder of a report in the spool."""
    return home.spool / run_id


def parcel_of(folder: Path, written: WrittenReport, bucket: S3Bucket) -> Parcel:
    """The parcel of a report that was written to `folder`; what is known already of its objects is kept.

    Raises:
        InfrastructureError: the disk refuses.
    """
    known = read_parcel(folder)
    if known is not None:
        return known.to(bucket)
    sha256 = {
        "parquet": file_sha256(written.parquet_path),
        "html": file_sha256(written.html_path),
        "json": written.sha256,
    }
    states = dict.fromkeys(CONTENT_TYPES, State.WAITING)
    parcel = Parcel(folder, written.report.run_id, written.key, bucket, sha256, states)
    parcel.keep()
    return parcel


def waiting(home: Home) -> list[Parcel]:
    """Every report in the spool, by run date and run id."""
    folders = sorted(home.spool.iterdir()) if home.spool.is_dir() else []
    parcels = [read_parcel(folder) for folder in folders if folder.is_dir()]
    return sorted((parcel for parcel in parcels if parcel is not None), key=lambda parcel: parcel.key)


def read_parcel(folder: Path) -> Parcel | None:
    """The parcel in a folder of the spool; None where its report was not finished.

    Raises:
        InfrastructureError: its note cannot be read.
    """
    path = folder / NOTE
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Parcel(
            folder,
            values["run_id"],
            values["key"],
            S3Bucket(**values["bucket"]),
            values["sha256"],
            {ending: State(values["states"][ending]) for ending in CONTENT_TYPES},
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InfrastructureError(
            f"{NOTE!r} of report {folder.name} in the spool cannot be read ({type(error).__name__})",
            fix="Move its folder out of the spool; the report in it is whole",
        ) from error


def add_receipt(home: Home, parcel: Parcel) -> None:
    """Add a line on a delivered report to the home's receipts."""
    line = {"run_id": parcel.run_id, "report": parcel.uri, "sha256": parcel.sha256["json"]}
    home.root.mkdir(parents=True, exist_ok=True)
    # One write of one line: lines of two processes do not mix.
    descriptor = os.open(home.receipts, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def receipts(home: Home) -> dict[str, dict[str, str]]:
    """What was delivered from here, by run id; a half line that a full disk left is passed over."""
    found: dict[str, dict[str, str]] = {}
    for line in home.receipts.read_text(encoding="utf-8").splitlines() if home.receipts.is_file() else []:
        try:
            receipt: dict[str, str] = json.loads(line)
            found[receipt["run_id"]] = receipt
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
