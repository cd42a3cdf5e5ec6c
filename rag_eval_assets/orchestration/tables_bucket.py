"""The tables' bucket as a resource of dagster-aws, which knows no addressing style and no waits of its own.

It is made from the settings of the code location and not offered in the launchpad: a run that read and wrote its tables
elsewhere than the run before would make nonsense of what Dagster knows of them.

No `from __future__ import annotations` here: Dagster reads the fields' types at run time. This module loads boto3.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any

from dagster_aws.s3 import S3Resource
from pydantic import Field

from rag_eval_assets.storage.s3 import client_config, make_session
from rag_eval_assets.storage.s3_names import Addressing, S3Bucket

ATTEMPTS = 5
"""Requests of the table store can be repeated: a table that is put twice is the same table."""


class TablesBucket(S3Resource):
    """The bucket that tables are put into and read from."""

    bucket: str = Field(description="Name of the bucket.")
    addressing: Addressing = Field(default="auto", description="Where the bucket's name stands in the URL.")

    @classmethod
    def of(cls, bucket: S3Bucket) -> "TablesBucket":
        """The resource of a bucket."""
        return cls(
            bucket=bucket.name,
            addressing=bucket.addressing,
            region_name=bucket.region,
            endpoint_url=bucket.endpoint,
            profile_name=bucket.profile,
            max_attempts=ATTEMPTS,
        )

    def get_client(self) -> Any:
        """A boto3 client with the addressing style and bounded waits."""
        place = S3Bucket(self.bucket, self.region_name or "", self.endpoint_url, self.addressing, self.profile_name)
        return make_session(self.profile_name).client(
            "s3", endpoint_url=self.endpoint_url, config=client_config(place, self.max_attempts)
        )

    def get_credentials(self) -> Any:
        """boto3's credentials, which renew themselves, for pyarrow's reads; None where there are none."""
        return make_session(self.profile_name).get_credentials()
