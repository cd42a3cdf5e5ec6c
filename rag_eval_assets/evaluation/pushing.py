"""Sends what waits in the spool: reports whose bucket was away, or refused them, when they were made."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.home import Home
from rag_eval_assets.progress import Reporter
from rag_eval_assets.report.delivery import Outcome, deliver
from rag_eval_assets.report.spool import Parcel, receipts, waiting
from rag_eval_assets.settings import Settings
from rag_eval_assets.storage.s3_names import S3Bucket
from rag_eval_assets.wording import counted


def push(home: Home, run_ids: Sequence[str], reporter: Reporter) -> Generator[str | InfrastructureError]:
    """Deliver the reports in the spool, or those of `run_ids`, and go on where one of them cannot be delivered.

    Yields:
        A line for each report, or what kept it from being delivered.

    Raises:
        ConfigurationError: a run id is neither in the spool nor among the receipts, or a setting cannot be used.
    """
    settings = Settings.from_environment()
    parcels = {parcel.run_id: parcel for parcel in waiting(home)}
    delivered = receipts(home)
    for run_id in run_ids:
        if run_id not in parcels and run_id not in delivered:
            raise ConfigurationError(
                f"report {run_id!r} neither waits in the spool nor was delivered from here",
                fix="Check the run id, and RAG_EVAL_HOME",
            )
    if not parcels and not run_ids:
        last = list(delivered.values())[-1:]
        yield "nothing waits" + "".join(
            f"; already there: {counted(len(delivered), 'report')}, the last {receipt['report']}" for receipt in last
        )
    for run_id in run_ids or list(parcels):
        parcel = parcels.get(run_id)
        if parcel is None:
            yield f"{Outcome.ALREADY_THERE}: {delivered[run_id]['report']}"
        else:
            yield _push(home, parcel.to(_bucket(parcel.bucket, settings)), reporter)


def _push(home: Home, parcel: Parcel, reporter: Reporter) -> str | InfrastructureError:
    try:
        outcome = deliver(home, parcel, reporter)
    except InfrastructureError as error:
        return error
    parcel.remove()
    return f"{outcome}: {parcel.uri} (sha256 {parcel.sha256['json']})"


def _bucket(noted: S3Bucket, settings: Settings) -> S3Bucket:
    """The bucket that a report was meant for, with what the environment sets by now: a wrong region can be mended."""
    return replace(
        noted,
        name=settings.report_bucket or noted.name,
        region=settings.s3_region or noted.region,
        endpoint=settings.s3_endpoint or noted.endpoint,
        addressing=settings.s3_addressing or noted.addressing,
        profile=settings.report_profile or noted.profile,
    )
