"""Puts a report where it belongs: into the local folder, or by way of the spool into its bucket."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.evaluation.destination import Destination
from rag_eval_assets.report.schema import Report
from rag_eval_assets.report.spool import Parcel, folder_of, parcel_of
from rag_eval_assets.report.write import WrittenReport, write_report

PUSH = "Then run `rag-eval report push`; the report waits in the spool"


def write_home(evaluation: Evaluation, where: Destination, report: Report, rows: pa.Table) -> WrittenReport:
    """Write the report to the local folder, or into the spool where it goes to a bucket."""
    root = evaluation.home.reports if where.bucket is None else folder_of(evaluation.home, report.run_id)
    return write_report(root, report, rows)


def send(evaluation: Evaluation, where: Destination, written: WrittenReport) -> tuple[WrittenReport, Parcel | None]:
    """Deliver a report that goes to a bucket.

    A failure is a fact about the report and not the end of the evaluation: its tables are good, and the report can be
    sent later.

    Returns:
        The report with its URI, or with what kept it from being delivered; and what to remove from the spool once the
        tables name the report.
    """
    if where.bucket is None:
        return written, None
    from rag_eval_assets.report.delivery import deliver

    parcel = parcel_of(folder_of(evaluation.home, written.report.run_id), written, where.bucket)
    try:
        deliver(evaluation.home, parcel, evaluation.reporter)
    except InfrastructureError as error:
        return replace(written, problem=f"{error.message}. {error.fix}. {PUSH}"), None
    return replace(written, uri=parcel.uri), parcel
