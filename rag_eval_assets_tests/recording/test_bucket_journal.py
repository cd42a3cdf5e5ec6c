"""A journal in a bucket: what one machine was answered, another one finds, and whatever S3 does, nothing is lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.progress import LogReporter
from rag_eval_assets.recording import bucket_journal, segments
from rag_eval_assets.recording.bucket_journal import BucketJournal
from rag_eval_assets.recording.journal import Journal
from rag_eval_assets.recording.segments import Segments
from rag_eval_assets.storage.s3 import make_client
from rag_eval_assets.storage.s3_errors import Diagnosis, Fault, S3Error
from rag_eval_assets.storage.s3_names import S3Bucket

PREFIX = "qa/tables/.journals/suite/target/2026-03-01"
MAY = (
    ("s3:GetObject", "/qa/tables/*"),
    ("s3:PutObject", "/qa/tables/*"),
    ("s3:DeleteObject", "/qa/tables/.journals/*"),
    ("s3:ListBucket", ""),
)
A, B, C = {"answer": "A"}, {"answer": "B"}, {"answer": "C"}


class Machines:
    """`machines("name")` is the journal as that machine opens it; what was said stands in `warnings`."""

    def __init__(self, folder: Path, reports: Any) -> None:
        self.folder = folder
        self.reports = reports
        self.warnings: list[str] = []
        self.allow(*MAY)

    def __call__(self, name: str) -> BucketJournal:
        return BucketJournal(Journal(self.path(name)), self.segments(), LogReporter(self.warnings.append))

    def path(self, name: str) -> Path:
        return self.folder / name / "2026-03-01.jsonl"

    def allow(self, *statements: tuple[str, str]) -> None:
        self.reports.allow(*statements)
        self._bucket = S3Bucket(self.reports.bucket, "eu-central-1", self.reports.server.url, "path")
        self._client = make_client(self._bucket)

    def segments(self) -> Segments:
        return Segments(self._bucket, PREFIX, self._client)

    def stop(self, name: str, **records: dict[str, Any]) -> None:
        """A run that gets these answers and ends without storing them."""
        with self(name) as journal:
            for key, record in records.items():
                journal.append(key, record)

    def finish(self, name: str) -> list[str]:
        """A run that stores its answers; returns the keys that it took over."""
        with self(name) as journal:
            found = [key for key in "abc" if journal.get(key)]
            journal.close_committed()
        return found

    def objects(self) -> dict[str, bytes]:
        return self.reports.objects()

    def wait_for(self, objects: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.objects()) < objects and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(self.objects()) == objects


@pytest.fixture
def machines(tmp_path: Path, reports) -> Machines:
    return Machines(tmp_path, reports)


@pytest.fixture
def never_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """No segment is put for its age."""
    monkeypatch.setattr(bucket_journal, "SECONDS", 600.0)


def test_another_machine_finds_what_was_answered_and_leaves_nothing_when_it_is_done(machines) -> None:
    odd = {"answer": "half \ud83d, ü\u2028", "passages": [{"score": math.nan}]}
    machines.stop("one", a=A, b=odd)
    machines.stop("two", c=C)
    assert len(machines.objects()) == 2
    with machines("three") as journal:
        assert len(journal) == 3
        assert (journal.get("a"), journal.get("c"), journal.get("d")) == (A, C, None)
        found = journal.get("b")
        assert found is not None
        assert found["answer"] == odd["answer"]
        assert math.isnan(found["passages"][0]["score"])
        journal.close_committed()
        assert journal.get("a") is None
    assert machines.objects() == {}
    assert [path.name for path in machines.path("three").parent.iterdir()] == ["2026-03-01.lock"]
    assert machines.warnings == []


def test_answers_are_put_in_groups_while_the_run_goes_on(machines, never_due, monkeypatch) -> None:
    monkeypatch.setattr(bucket_journal, "RECORDS", 2)
    with machines("lost") as journal:
        journal.append("a", A)
        journal.append("b", B)
        machines.wait_for(1)
        journal.append("c", C)
        # Had the machine been lost now, only what was not in a group yet would have to be paid for again.
        with machines("another") as found:
            assert (found.get("a"), found.get("b"), found.get("c")) == (A, B, None)


def test_an_answer_waits_only_so_long_for_others(machines, monkeypatch) -> None:
    monkeypatch.setattr(bucket_journal, "SECONDS", 0.01)
    with machines("one") as journal:
        journal.append("a", A)
        machines.wait_for(1)


def test_a_killed_process_has_every_answer_in_its_local_journal_and_the_next_one_puts_them(machines) -> None:
    machines.stop("elsewhere", a=A)
    with Journal(machines.path("one")) as killed:
        killed.append("b", B)
    machines.stop("one")
    assert len(machines.objects()) == 2
    with machines("another") as journal:
        assert (journal.get("a"), journal.get("b")) == (A, B)


def test_two_runs_at_once_keep_apart_and_neither_deletes_what_the_other_was_answered(machines, never_due) -> None:
    with machines("one") as one, machines("two") as two:
        one.append("a", A)
        two.append("a", B)
        two.append("c", C)
        two.close_committed()
        assert one.get("a") == A
        assert machines.objects() == {}, "what the first one holds is not in the bucket yet"
    with machines("three") as three:
        assert (three.get("a"), three.get("c")) == (A, None)
        # The first run again: it holds segments that the third has taken over.
        machines.stop("one", b=B)
        three.close_committed()
    with machines("four") as four:
        assert (four.get("a"), four.get("b")) == (None, B)


@pytest.mark.parametrize(
    ("damaged", "lines"),
    [(lambda whole: whole[:-5], 1), (lambda _: b"\0\xff\xfe", 1), (lambda whole: b"[1]\n{}\n" + whole, 2)],
    ids=["cut", "no text", "other lines"],
)
def test_a_damaged_segment_costs_its_own_records_and_is_named(
    machines, damaged: Callable[[bytes], bytes], lines: int
) -> None:
    machines.stop("one", a=A)
    machines.stop("two", b=B)
    key, whole = max(machines.objects().items())
    machines.reports.server.client().put_object(Bucket=machines.reports.bucket, Key=key, Body=damaged(whole))
    with machines("three") as journal:
        assert journal.get("a") == A
        assert journal.get("b") == (B if lines == 2 else None)
        journal.close_committed()
    (warning,) = machines.warnings
    assert f"s3://{machines.reports.bucket}/{key} is damaged: {lines} of its lines cannot be read" in warning
    assert machines.objects() == {}


def test_a_bucket_that_is_away_is_said_once_and_gets_everything_when_it_is_back(
    machines, never_due, monkeypatch
) -> None:
    monkeypatch.setattr(bucket_journal, "RECORDS", 1)
    put, refusals = segments.put_bytes, []

    def away(client, bucket, key, content, **options) -> None:
        refusals.append(key)
        raise S3Error(Diagnosis(Fault.NO_ANSWER, "ReadTimeoutError"), "PutObject", bucket.uri(key))

    with machines("one") as journal:
        monkeypatch.setattr(segments, "put_bytes", away)
        journal.append("a", A)
        while not refusals:
            time.sleep(0.01)
        journal.append("b", B)
        journal.append("c", C)
        monkeypatch.setattr(segments, "put_bytes", put)
    (warning,) = machines.warnings
    assert "the journal does not reach the bucket (s3:PutObject on s3://" in warning
    assert "no answer (ReadTimeoutError)" in warning
    assert "are in the journal of this machine alone until S3 takes them" in warning
    assert len(refusals) == 1, "it is not asked again for every answer"
    # The segment that got no answer may have been stored: the next one took its name.
    assert list(machines.objects()) == [refusals[0]]
    assert machines.finish("two") == ["a", "b", "c"]


def test_a_segment_whose_answer_was_lost_is_deleted_with_the_others(machines, never_due, monkeypatch) -> None:
    monkeypatch.setattr(bucket_journal, "RECORDS", 1)
    put = segments.put_bytes

    def stored_but_unheard_of(client, bucket, key, content, **options) -> None:
        put(client, bucket, key, content, **options)
        raise S3Error(Diagnosis(Fault.NO_ANSWER, "ReadTimeoutError"), "PutObject", bucket.uri(key))

    monkeypatch.setattr(segments, "put_bytes", stored_but_unheard_of)
    with machines("one") as journal:
        journal.append("a", A)
        machines.wait_for(1)
        journal.close_committed()
    assert machines.objects() == {}


def test_what_was_stored_elsewhere_is_not_taken_from_the_local_journal(machines) -> None:
    """The date is evaluated, and an evaluation that follows asks anew, as it does on one machine."""
    machines.stop("one", a=A, b=B)
    assert machines.finish("two") == ["a", "b"]
    assert machines.finish("one") == []


def test_a_local_journal_outlives_a_move_to_another_bucket(machines, tmp_path: Path) -> None:
    machines.stop("one", a=A)
    machines.reports.bucket = machines.reports.server.bucket()
    machines.allow(*MAY)
    assert machines.finish("one") == ["a"]


def test_a_segment_that_is_gone_between_list_and_read_was_stored(machines) -> None:
    machines.stop("one", a=A)
    place = machines.segments()
    names = place.names()
    machines.finish("two")
    assert place.read(names, LogReporter(machines.warnings.append)).records == {}


def test_journals_that_may_not_be_deleted_are_told_and_fail_no_run(machines) -> None:
    machines.allow(*[statement for statement in MAY if statement[0] != "s3:DeleteObject"])
    machines.stop("one", a=A)
    assert machines.finish("one") == ["a"]
    (warning,) = machines.warnings
    assert "answers that are stored by now stay in the journal" in warning
    assert "s3:DeleteObject on s3://" in warning
    assert "denied (AccessDenied)" in warning
    assert not machines.path("one").exists()


def test_a_journal_that_may_not_be_read_is_refused_before_anything_is_asked_and_not_kept_locked(machines) -> None:
    machines.allow(("s3:PutObject", "/qa/tables/*"))
    with pytest.raises(S3Error, match=r"s3:ListBucket on s3://.* failed: denied"), machines("one"):
        pass
    machines.allow(*MAY)
    with (
        machines("one"),
        pytest.raises(InfrastructureError, match="another run is asking the same target"),
        machines("one"),
    ):
        pass
