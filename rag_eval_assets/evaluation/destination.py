"""Where the reports of a suite go: settings of the environment first, then the suite file, then a local folder."""

from __future__ import annotations

from dataclasses import dataclass

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.settings import Settings
from rag_eval_assets.storage.s3_names import S3Bucket
from rag_eval_assets.suite.load import LoadedSuite


@dataclass(frozen=True)
class Destination:
    """Where reports go.

    Attributes:
        env: label of the environment.
        bucket: None for the local folder.
    """

    env: str
    bucket: S3Bucket | None


def destination(suite: LoadedSuite) -> Destination:
    """The destination of a suite's reports; nothing is sent anywhere.

    Raises:
        ConfigurationError: a setting cannot be used, or no region is known for the bucket.
    """
    settings, report = Settings.from_environment(), suite.suite.report
    env = settings.env or report.env
    name = settings.report_bucket or report.s3.bucket
    if name is None:
        return Destination(env, None)
    return Destination(
        env,
        S3Bucket(
            name,
            settings.s3_region or report.s3.region or _ambient_region(name, settings.report_profile),
            settings.s3_endpoint or report.s3.endpoint,
            settings.s3_addressing or report.s3.addressing,
            settings.report_profile,
        ),
    )


def ready(suite: LoadedSuite) -> str:
    """What `rag-eval validate` says of the destination; nothing is sent to S3, which the writer may not ask anything.

    Raises:
        ConfigurationError: as `destination`, or there are no credentials.
    """
    where = destination(suite)
    if where.bucket is None:
        return f"local folder, environment {where.env}"
    from rag_eval_assets.storage.s3 import require_credentials

    method = require_credentials(where.bucket.profile)
    at = f" at {where.bucket.endpoint}" if where.bucket.endpoint else ""
    return f"{where.bucket.uri(f'{where.env}/eval-runs/')} in {where.bucket.region}{at} (credentials: {method})"


def _ambient_region(bucket: str, profile: str | None) -> str:
    from rag_eval_assets.storage.s3 import ambient_region

    region = ambient_region(profile)
    if region is None:
        raise ConfigurationError(
            f"no region is known for bucket {bucket!r} of the reports",
            fix="Set report.s3.region, RAG_EVAL_S3_REGION or AWS_REGION",
        )
    return region
