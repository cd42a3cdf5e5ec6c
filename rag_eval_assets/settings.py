"""What the environment sets in place of the suite: where reports and tables lie, and under which label.

A suite is shared between environments; what differs between them stands in `RAG_EVAL_*` variables, which come first.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.storage.s3_names import Addressing, Bucket, Endpoint, Env, PlaceUri, Region

PREFIX = "RAG_EVAL_"


class Settings(BaseSettings):
    """The variables, each `RAG_EVAL_` and the field's name in capitals. An empty variable is an unset one."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    env: Env | None = Field(default=None, description="Label of the environment, the first part of a report's key.")
    report_bucket: Bucket | None = Field(default=None, description="Bucket that reports are written to.")
    report_profile: str | None = Field(default=None, description="AWS profile of the report writer.")
    tables: PlaceUri | None = Field(default=None, description="s3://bucket/prefix of the tables; else a local folder.")
    tables_profile: str | None = Field(default=None, description="AWS profile of the table store.")
    journal: Literal["local", "s3"] = Field(
        default="local",
        description="Journals of unfinished runs: in the local home, or beside the tables in S3 as well.",
    )
    s3_region: Region | None = Field(default=None, description="Region of the buckets.")
    s3_endpoint: Endpoint | None = Field(default=None, description="URL of an S3 service other than AWS.")
    s3_addressing: Addressing | None = Field(default=None, description="Bucket in the path or in the host name.")
    git_revision: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{7,64}$",
        description="Revision for reports, where there is no .git.",
    )

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings of this process.

        Raises:
            ConfigurationError: a variable has a value that cannot be used.
        """
        return _settings(tuple(sorted(item for item in os.environ.items() if item[0].upper().startswith(PREFIX))))


@lru_cache(maxsize=8)
def _settings(variables: tuple[tuple[str, str], ...]) -> Settings:
    """Kept while they are the same: every asset and check asks, and reading them costs more than a small table."""
    del variables
    try:
        return Settings()
    except ValidationError as error:
        faults = [
            _fault(PREFIX + str(details["loc"][0]).upper(), _shown(details["input"]), details["msg"])
            for details in error.errors(include_url=False)
        ]
        raise ConfigurationError("; ".join(faults), fix="Correct it, or unset it") from error


def _fault(variable: str, value: str, message: str) -> str:
    # Our own checks say what a value is not; those of pydantic what it should be.
    return f"{variable}: {value} {message}" if message.startswith("is ") else f"{variable} is {value}: {message}"


def _shown(value: object) -> str:
    """A value for an error message, without a name and password in a URL."""
    return re.sub(r"(?<=://)[^/\s]*@", "", repr(value))
