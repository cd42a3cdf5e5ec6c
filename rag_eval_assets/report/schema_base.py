"""What all models of the report share: strictness, and types with one written form."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer

UtcTime = Annotated[
    AwareDatetime,
    AfterValidator(lambda moment: moment.astimezone(UTC)),
    PlainSerializer(lambda moment: moment.isoformat(timespec="microseconds"), return_type=str),
    Field(json_schema_extra={"format": "date-time"}),
]
"""A moment, written as ISO 8601 in UTC with offset."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Interval = Annotated[list[float], Field(min_length=2, max_length=2)]
Unit = Annotated[float, Field(ge=0, le=1)]


class ReportModel(BaseModel):
    """Base of all parts: strict about fields, and no number is NaN or infinite."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        protected_namespaces=(),
    )
