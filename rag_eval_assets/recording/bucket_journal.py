"""A journal that other machines find: the local one, and beside it segments in a bucket that follow it by seconds.

The local journal is the first line of defence, since every answer is in it before the next question is asked. A thread
puts what is new into the bucket, a group of answers at a time. Where S3 is away, the run goes on without it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rag_eval_assets.errors import EvalError, describe_error
from rag_eval_assets.progress import Reporter
from rag_eval_assets.recording.journal import Journal, line_of
from rag_eval_assets.recording.segments import Loaded, Segments

SECONDS = 5.0
"""An answer waits at most so long for its segment: what is lost with a machine."""

RECORDS = 100
"""So many answers are put at once, also where they came faster."""


class BucketJournal:
    """The journal of one suite, target and run date, in the local home and in a bucket.

    Runs on different machines do not lock each other out: S3 has no lock that goes with its holder. Each then pays for
    its own answers, in segments of its own, and deletes those alone that it took over or made.

    Args:
        local: the journal of this machine, not yet entered.
        segments: those of the same suite, target and run date.
        reporter: is told what goes wrong with the bucket, once.

    Raises:
        InfrastructureError: another process of this machine holds the journal, or the segments cannot be read.
    """

    def __init__(self, local: Journal, segments: Segments, reporter: Reporter) -> None:
        self._local = local
        self._segments = segments
        self._reporter = reporter
        self._note = _Note(local.path.with_suffix(".put"), segments.uri)
        self._names: set[str] = set()
        self._taken_over: dict[str, dict[str, Any]] = {}
        self._sender = _Sender(segments, self._note)
        self._told = False

    def __enter__(self) -> Self:
        self._local.__enter__()
        try:
            names = self._segments.names()
            put = self._note.names()
            if put and not put.intersection(names):  # a run that stored the table deletes them, be it on which machine
                self._local.clear()
                self._note.remove()
            loaded = self._segments.read(names, self._reporter)
        except BaseException:
            self._local.__exit__(None, None, None)
            raise
        self._names = set(names)
        self._taken_over = loaded.records
        self._tell_damage(loaded)
        for key, record in self._local.records.items():  # of a run that was killed, or while S3 was away
            if key not in loaded.records:
                self._sender.add(line_of(key, record))
        self._sender.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._sender.close(send=True)
            self._tell_trouble()
        finally:
            self._local.__exit__(kind, error, trace)

    def __len__(self) -> int:
        return len(self._taken_over.keys() | self._local.records.keys())

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of `key` (`Journal.key`), or None."""
        return self._local.get(key) or self._taken_over.get(key)

    def append(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record; it survives a kill of this process at once, and the loss of this machine within seconds."""
        self._local.append(key, record)
        self._sender.add(line_of(key, record))
        self._tell_trouble()

    def close_committed(self) -> None:
        """The partition is committed: the segments that were read or made here are deleted, and the local journal."""
        self._sender.close(send=False)
        self._taken_over.clear()
        try:
            self._segments.delete(self._names)
        except EvalError as error:  # the answers are stored; a run must not fail for what it leaves
            self._reporter.warn(
                f"answers that are stored by now stay in the journal, {self._segments.uri}/ ({error}); unless they are "
                "deleted, the next run of the date takes them over"
            )
        self._local.close_committed()
        self._note.remove()

    def _tell_damage(self, loaded: Loaded) -> None:
        for name, lines in loaded.damaged.items():
            self._reporter.warn(
                f"{self._segments.uri}/{name} is damaged: {lines} of its lines cannot be read, and what stood there is "
                "asked again"
            )

    def _tell_trouble(self) -> None:
        if self._sender.trouble is not None and not self._told:
            self._told = True
            self._reporter.warn(
                f"the journal does not reach the bucket ({self._sender.trouble}); the run goes on, and its answers are "
                "in the journal of this machine alone until S3 takes them"
            )


class _Note:
    """A file beside the local journal that names the segments that came from this machine.

    Where none of them is left, somebody has stored the answers, and the local journal is out of date.
    """

    def __init__(self, path: Path, uri: str) -> None:
        self._path = path
        self._uri = uri

    def names(self) -> set[str]:
        """The segments of this bucket and prefix."""
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        return {line.removeprefix(f"{self._uri}/") for line in lines if line.startswith(f"{self._uri}/")}

    def add(self, name: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{self._uri}/{name}\n")

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class _Sender:
    """Puts lines into segments from a thread of its own, so that no question waits for S3.

    Attributes:
        trouble: why a segment could not be put.
    """

    def __init__(self, segments: Segments, note: _Note) -> None:
        self.trouble: str | None = None
        self._segments = segments
        self._note = note
        self._lines: list[bytes] = []
        self._away = False
        self._closing = False
        self._wanted = True
        self._due = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, line: bytes) -> None:
        with self._due:
            self._lines.append(line)
            self._due.notify()

    def close(self, *, send: bool) -> None:
        """Wait for the request that is under way, and with `send` for one more with all that is left."""
        with self._due:
            self._closing = True
            self._wanted = send
            if not send:
                self._lines.clear()
            self._due.notify()
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._due:
                self._due.wait_for(self._is_due, timeout=SECONDS)
                closing, lines = self._closing, self._lines
                self._lines = []
            if lines and not self._send(lines) and self._wanted:
                with self._due:
                    self._lines[:0] = lines

    def _is_due(self) -> bool:
        return self._closing or (len(self._lines) >= RECORDS and not self._away)

    def _send(self, lines: list[bytes]) -> bool:
        """Whether they were put; where not, they go with the next ones."""
        try:
            self._note.add(self._segments.put(lines))
        except Exception as error:  # noqa: BLE001 - whatever it is, the local journal has every answer
            self.trouble = str(error) if isinstance(error, EvalError) else describe_error(error)
            self._away = True
        else:
            self._away = False
        return not self._away
