"""The version of a corpus as a hash of its content, wherever it lies: files, a folder, the hub, an address, a bucket.

What cannot be read is never taken for empty: it raises, and the sensor waits.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_eval_assets.automation.remote import http_version, hub_commit, s3_listing
from rag_eval_assets.canonical import sequence_hash
from rag_eval_assets.dataset.sources import local_file
from rag_eval_assets.errors import ConfigurationError, InfrastructureError, describe_error
from rag_eval_assets.suite.automation import Watch
from rag_eval_assets.suite.load import LoadedSuite
from rag_eval_assets.suite.models import FileDataSet, HuggingFaceDataSet

_COMMIT = re.compile(r"[0-9a-f]{40}")

_RACY_SECONDS = 2.0
"""A file that was written so shortly before it was hashed may be written again without a new time stamp."""

_HASHES: dict[tuple[str, int, int, int], str] = {}
"""Path, inode, size and time of change to SHA-256: a sensor looks again and again, and little has changed."""


def watched(suite: LoadedSuite) -> list[Watch]:
    """What the corpus sensor of a suite looks at: what `watch` names, else the files that the corpus is read from.

    Raises:
        ConfigurationError: the suite has no sensor, or its corpus cannot change.
    """
    sensor = suite.suite.corpus_sensor
    if sensor is not None and sensor.watch is not None:
        return [sensor.watch]
    found = list(_read_from(suite))
    if not found:
        raise ConfigurationError(
            f"suite {suite.name!r}: 'corpus_sensor' has nothing to look at, since its corpus cannot change",
            fix="Say where the documents are with 'corpus_sensor: {watch: {folder: ...}}', or 'file', 'url', 's3'",
        )
    return found


def _read_from(suite: LoadedSuite) -> Iterator[Watch]:
    corpus = suite.suite.corpus
    if corpus is not None and corpus.file is not None:
        yield Watch.model_validate({"file": corpus.file})
    if corpus is not None and corpus.source == "contexts":
        for data_set in suite.suite.datasets:
            if isinstance(data_set, FileDataSet):
                yield Watch.model_validate({"file": data_set.file})
            # A commit never changes, and `unverified` is held by the lock file.
            elif isinstance(data_set, HuggingFaceDataSet) and not _is_pinned(data_set.revision):
                yield Watch.model_validate({"huggingface": data_set.huggingface, "revision": data_set.revision})


def _is_pinned(revision: str) -> bool:
    return revision == "unverified" or _COMMIT.fullmatch(revision) is not None


def fingerprint(suite: LoadedSuite) -> str:
    """The version of a suite's corpus: equal for equal content, wherever and whenever it was written.

    Raises:
        InfrastructureError: it cannot be read, or holds no file.
        ConfigurationError: there is nothing to look at.
    """
    return sequence_hash(_version(suite, watch) for watch in watched(suite))


def shorten(version: str) -> str:
    """A fingerprint as people see it."""
    return version[:12]


def _version(suite: LoadedSuite, watch: Watch) -> str:
    if watch.huggingface is not None:
        return hub_commit(watch.huggingface, watch.revision)
    if watch.url is not None:
        return http_version(watch.url, watch.json_pointer, watch.token_env)
    if watch.s3 is not None:
        return sequence_hash(s3_listing(watch.s3))
    path = local_file(suite, str(watch.file or watch.folder))
    try:
        return _file_version(path) if watch.file is not None else _folder_version(path)
    except OSError as error:
        raise InfrastructureError(f"{path.name!r} cannot be read ({describe_error(error)})") from error


def _folder_version(folder: Path) -> str:
    files = sorted(_files_below(folder))
    if not files:  # a folder that something is mounted on looks like this when it is not mounted
        raise InfrastructureError(f"folder {folder.name!r} holds no file")
    return sequence_hash(_lines(folder, files))


def _lines(folder: Path, files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        # As JSON, since a name may hold a line break or bytes that are no text.
        yield f"{json.dumps(file.relative_to(folder).as_posix())}\t{_file_version(file)}"


def _files_below(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    entered: set[tuple[int, int]] = set()
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        status = Path(parent).stat()
        if (status.st_dev, status.st_ino) in entered:  # links in a circle
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        yield from (Path(parent, name) for name in names)


def _file_version(path: Path) -> str:
    status = path.stat()
    key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
    if key in _HASHES:
        return _HASHES[key]
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if time.time() - status.st_mtime > _RACY_SECONDS:
        _HASHES[key] = digest
    return digest
