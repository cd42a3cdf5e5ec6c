"""The objects of a journal in a bucket: S3 knows no appending, so each holds the answers of a few seconds, put whole.

Their names are the writer's own, so two writers never replace each other's, and sort by time.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from rag_eval_assets.progress import Reporter, Stage, stage
from rag_eval_assets.recording.journal import entry_of
from rag_eval_assets.storage.s3 import delete, get_bytes, keys_below, put_bytes
from rag_eval_assets.storage.s3_errors import Fault, S3Error
from rag_eval_assets.storage.s3_names import S3Bucket

CONTENT_TYPE = "application/x-ndjson"

_AT_ONCE = 8
"""Requests at the same time: a journal of an hour has hundreds of segments. boto3's pool holds 10 connections."""


@dataclass(frozen=True)
class Loaded:
    """What stands in segments.

    Attributes:
        records: by key; of a key that stands there twice, the one of the later segment.
        damaged: name of a segment to how many of its lines cannot be read.
    """

    records: dict[str, dict[str, Any]]
    damaged: dict[str, int]


class Segments:
    """The segments of one journal.

    Args:
        bucket: where.
        prefix: of their keys, without a slash at its end.
        client: boto3's; it may repeat what fails.
    """

    def __init__(self, bucket: S3Bucket, prefix: str, client: Any) -> None:
        self.uri = bucket.uri(prefix)
        self._bucket = bucket
        self._prefix = prefix
        self._client = client
        self._writer = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S%fZ}-{uuid.uuid4().hex[:12]}"
        self._count = 0
        self._own: set[str] = set()

    def names(self) -> list[str]:
        """The names of the segments that are there, the oldest first; raises S3Error."""
        keys = keys_below(self._client, self._bucket, f"{self._prefix}/")
        return [key.removeprefix(f"{self._prefix}/") for key in keys]

    def read(self, names: Sequence[str], reporter: Reporter) -> Loaded:
        """What stands in the segments of these names; one that is gone by now holds nothing. Raises S3Error."""
        loaded = Loaded({}, {})
        if not names:
            return loaded
        with stage(reporter, "journal", len(names), "segments") as running, ThreadPoolExecutor(_AT_ONCE) as pool:
            contents = list(pool.map(partial(self._get, running), names))
        for name, content in zip(names, contents, strict=True):
            # A whole segment ends with a line end; where it was cut, what follows the last one is half a record.
            entries = [entry_of(line) for line in content.removesuffix(b"\n").split(b"\n")] if content else []
            loaded.records.update(entry for entry in entries if entry is not None)
            if entries.count(None):
                loaded.damaged[name] = entries.count(None)
        return loaded

    def put(self, lines: Sequence[bytes]) -> str:
        """Put lines as a new segment, and return its name.

        Raises:
            S3Error: it failed. The next call must repeat these lines: it takes the same name, since S3 may have stored
                this segment all the same.
        """
        name = f"{self._writer}-{self._count:06d}.jsonl"
        self._own.add(name)
        put_bytes(self._client, self._bucket, self._key(name), b"".join(lines), content_type=CONTENT_TYPE)
        self._count += 1
        return name

    def delete(self, names: Collection[str]) -> None:
        """Delete the segments of these names, and those that were made here; raises S3Error."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._delete, {*names, *self._own}))

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def _delete(self, name: str) -> None:
        delete(self._client, self._bucket, self._key(name))

    def _get(self, running: Stage, name: str) -> bytes:
        try:
            return get_bytes(self._client, self._bucket, self._key(name))
        except S3Error as error:
            if error.fault is Fault.NO_KEY:  # another run has stored its answers meanwhile
                return b""
            raise
        finally:
            running.advance()
