"""Whole runs whose reports go to a bucket: what lies there, what was asked of S3, and what happens where it is away."""

from __future__ import annotations

import hashlib
import json

DATE = "2026-03-01"
FOLDER = "qa/eval-runs/2026/03/01"


def test_a_run_ends_with_its_report_in_the_bucket_and_an_empty_spool(place, reports) -> None:
    done = place.execute(place.suite())
    assert done.failures == []
    (written,) = done.reports
    key = f"{FOLDER}/{written.report.run_id}"
    assert written.place == f"s3://{reports.bucket}/{key}.json"
    objects = reports.objects()
    assert sorted(objects) == [f"{key}.{ending}" for ending in ("html", "json", "parquet")]
    assert hashlib.sha256(objects[f"{key}.json"]).hexdigest() == written.sha256
    assert list(place.home.spool.iterdir()) == []
    assert not place.home.reports.exists()
    assert (read_receipt := place.home.receipts.read_text()) and json.loads(read_receipt)["report"] == written.place
    assert json.loads(objects[f"{key}.json"])["run"]["env"] == "qa"
    # The writer put three objects, the JSON last, and asked for nothing else.
    assert reports.requests() == [("PUT", f"{key}.{ending}", 200) for ending in ("parquet", "html", "json")]
