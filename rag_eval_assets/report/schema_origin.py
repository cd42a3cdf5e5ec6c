"""The part of a report that says which suite it was made with, so that the same can be run again."""

from __future__ import annotations

from pydantic import Field, JsonValue

from rag_eval_assets.report.schema_base import ReportModel, Sha256


class Origin(ReportModel):
    """The suite that was evaluated."""

    suite: str = Field(description="Its name.")
    suite_file: str = Field(description="Name of the file, without its folder.")
    bundled: bool = Field(description="Whether it is a suite of the package.")
    suite_sha256: Sha256 = Field(description="Hash of the suite's content, defaults filled in.")
    git_revision: str | None = Field(description="Commit of the checkout that the suite file lies in.")
    limit: int | None = Field(description="Only the first so many examples; null where all were asked.")
    settings: dict[str, JsonValue] = Field(
        description="The suite's content, defaults filled in; absolute paths are left out."
    )
