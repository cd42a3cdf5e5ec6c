"""The scorers of a suite file: what answers are compared with, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rag_eval_assets.suite.base import SuiteModel
from rag_eval_assets.suite.names import RESERVED_SCORER_NAMES
from rag_eval_assets.suite.patterns import NOT_BLANK, SCORER_NAME, VARIABLE
from rag_eval_assets.suite.urls import check_url

NotBlank = Annotated[str, Field(pattern=NOT_BLANK)]
"""A text that holds more than white space."""


Precision = Annotated[
    Literal["fp32", "bf16"],
    Field(description="bf16 is some three times as fast where the processor has it, and off by up to 2e-3."),
]

ReferenceEngine = Annotated[
    Literal["reference"] | None,
    Field(description="reference: the public packages themselves, one pair at a time; slow, within 1e-6 of ours."),
]


class _Scorer(SuiteModel):
    @property
    def name(self) -> str:
        """Name of the scorer in tables and reports."""
        return str(getattr(self, "type"))  # noqa: B009 - the subclasses' discriminator field

    def settings(self) -> dict[str, Any]:
        """What its scores depend on; a table that was made with other settings is out of date."""
        return self.model_dump(mode="json")


class BertScore(_Scorer):
    """BERTScore (Zhang et al. 2020), computed locally."""

    type: Literal["bertscore"]
    model: str = Field("bert-base-uncased", description="Token encoder, an id of the model registry.")
    layer: int | None = Field(None, ge=1, le=48, description="Layer of the embeddings; by default the registry's.")
    rescale_with_baseline: bool = Field(False, description="Rescale with bert-score's baseline; the report says so.")
    idf: bool = Field(False, description="Weigh tokens by inverse document frequency over the table's references.")
    precision: Precision = "fp32"
    engine: ReferenceEngine = None


class SentenceCosine(_Scorer):
    """Cosine of sentence embeddings, computed locally."""

    type: Literal["sentence_cosine"]
    model: str = Field("all-MiniLM-L6-v2", description="Sentence encoder, an id of the model registry.")
    precision: Precision = "fp32"
    engine: ReferenceEngine = None


class Similarity(_Scorer):
    """Cosine of the embeddings that an OpenAI-compatible service returns, compared with a threshold."""

    type: Literal["similarity"]
    given_name: str | None = Field(
        None,
        alias="name",
        pattern=SCORER_NAME,
        description="Name in tables and reports; needed where a suite has several of this type.",
    )
    url: str = Field(description="Address of the API; calls go to `<url>/embeddings`, with the query that it has.")
    model: str = Field(min_length=1, description="Model that the service is asked for.")
    api_key_env: str | None = Field(
        None,
        pattern=VARIABLE,
        description="Environment variable with the key; read at the first real call, and never in replay.",
    )
    threshold: float = Field(0.8, ge=-1, le=1, description="An answer passes with at least this cosine, less 1e-9.")
    references: list[NotBlank] = Field(
        default_factory=list[NotBlank],
        description="Further acceptable answers to every question; the best cosine counts.",
    )
    dimensions: int | None = Field(None, ge=1, description="Length of the vectors to ask for, where the service can.")
    batch_size: int = Field(1, ge=1, le=2048, description="Texts in one request.")
    timeout_seconds: float = Field(
        120.0, gt=0, le=3600, description="Longest time of one attempt, its answer included."
    )
    max_retries: int = Field(2, ge=0, le=20, description="Further attempts after 429, 5xx, and broken connections.")
    usd_per_million_tokens: float | None = Field(None, ge=0, description="Price, for the cost in the report.")

    @property
    def name(self) -> str:
        """Name of the scorer in tables and reports."""
        return self.given_name or self.type

    def settings(self) -> dict[str, Any]:
        """All but what only says how calls are made and what they cost."""
        how = {"api_key_env", "batch_size", "timeout_seconds", "max_retries", "usd_per_million_tokens"}
        return self.model_dump(mode="json", exclude=how)

    @field_validator("url")
    @classmethod
    def _url_is_usable(cls, url: str) -> str:
        return check_url(url)

    @field_validator("given_name")
    @classmethod
    def _name_is_free(cls, name: str | None) -> str | None:
        if name in RESERVED_SCORER_NAMES:
            raise PydanticCustomError("scorer_name", "is already the name of a table or of a column in reports")
        return name


LocalScorer = BertScore | SentenceCosine
"""Scorers whose models run in this process."""

Scorer = Annotated[BertScore | SentenceCosine | Similarity, Field(discriminator="type")]
