"""Delivers a report from the spool to its bucket: each attempt is one conditional PUT, and no other request is made.

The writer may put objects and nothing else. It therefore learns from answers alone: an object that is there already
(412) is its own where an earlier attempt of the same bytes got no answer, and somebody else's otherwise.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from filelock import FileLock, Timeout

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.home import Home
from rag_eval_assets.progress import Reporter
from rag_eval_assets.report.spool import CONTENT_TYPES, Parcel, State, add_receipt, read_parcel, receipts
from rag_eval_assets.storage.s3 import make_client, put_file
from rag_eval_assets.storage.s3_errors import RETRIED, Fault, S3Error

ATTEMPTS = 5
FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further pause is twice as long, 7.5 s in all, less a random part."""

LOCK_SECONDS = 600.0


class Outcome(StrEnum):
    """What became of a report."""

    DELIVERED = "delivered"
    ALREADY_THERE = "already there"


def deliver(home: Home, parcel: Parcel, reporter: Reporter) -> Outcome:
    """Put what is not yet delivered of a report. The parcel stays in the spool, also when it is delivered.

    Args:
        home: whose spool it is.
        parcel: the report.
        reporter: told of each object.

    Raises:
        S3Error: an object was refused, or could not be delivered in `ATTEMPTS` attempts.
        InfrastructureError: another process has been delivering for ten minutes.
    """
    with _alone(home):
        known = read_parcel(parcel.folder)
        if known is None and parcel.run_id in receipts(home):  # another process was faster
            return Outcome.ALREADY_THERE
        parcel = known.to(parcel.bucket) if known is not None else parcel
        receipt = receipts(home).get(parcel.run_id)
        if receipt == {"run_id": parcel.run_id, "report": parcel.uri, "sha256": parcel.sha256["json"]}:
            return Outcome.ALREADY_THERE
        if not parcel.delivered:
            parcel = _deliver(parcel, reporter)
        add_receipt(home, parcel)
    return Outcome.DELIVERED


def _deliver(parcel: Parcel, reporter: Reporter) -> Parcel:
    client = make_client(parcel.bucket)
    stage = reporter.stage("delivery", len(CONTENT_TYPES), "objects")
    try:
        for ending, state in parcel.states.items():
            if state is not State.DELIVERED:
                parcel = _put(client, parcel, ending)
            stage.advance()
    finally:
        reporter.close(stage)
    return parcel


def _put(client: Any, parcel: Parcel, ending: str) -> Parcel:
    """Put one object, in several attempts where one fails for a reason that may pass."""
    for attempt in range(ATTEMPTS):
        before = parcel.states[ending]
        # On the disk before anything is sent: after a kill, nobody else knows that there was an attempt.
        parcel = parcel.note(ending, State.UNKNOWN)
        try:
            put_file(
                client,
                parcel.bucket,
                f"{parcel.key}.{ending}",
                parcel.path(ending),
                sha256=parcel.sha256[ending],
                content_type=CONTENT_TYPES[ending],
                once=True,
            )
        except S3Error as error:
            if error.fault is Fault.EXISTS and before is State.UNKNOWN:
                return parcel.note(ending, State.DELIVERED)
            if error.fault is not Fault.NO_ANSWER:  # this attempt was not carried out; an earlier one may have been
                parcel = parcel.note(ending, before)
            if error.fault not in RETRIED or attempt == ATTEMPTS - 1:
                raise
            time.sleep(FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1))
        else:
            return parcel.note(ending, State.DELIVERED)
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def _alone(home: Home) -> Generator[None]:
    """One delivery at a time from one home, so that nobody's own object looks like a stranger's."""
    home.root.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(home.root / "delivery.lock", timeout=LOCK_SECONDS):
            yield
    except Timeout as error:
        raise InfrastructureError(
            "another process has been delivering reports for ten minutes", fix="Try `rag-eval report push` later"
        ) from error
