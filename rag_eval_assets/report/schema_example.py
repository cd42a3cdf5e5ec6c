"""The shape of one entry of the report's `examples`: a question and everything that became of it."""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from rag_eval_assets.report.schema_base import ReportModel, Sha256

TEXT_CHARACTERS = 200
"""Characters of a retrieved passage in `examples[].retrieved`; the whole text is in the Parquet."""


class Retrieval(ReportModel):
    """The retrieval judgement of an example."""

    top_k_match: bool | None
    rank: int | None = Field(description="1-based rank of the best passage that is the context; null where none is.")
    status: str
    method: str | None


class BertScore(ReportModel):
    """BERTScore of an answer."""

    precision: float
    recall: float
    f1: float


class AnswerSimilarity(ReportModel):
    """Raw scores of an answer, null where there is none; further ones stand under `<scorer>_<value>`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | None]  # pyright: ignore[reportIncompatibleVariableOverride]

    bertscore: BertScore | None
    sentence_cosine: float | None


class Usage(ReportModel):
    """Tokens, as the target says."""

    input_tokens: int | None
    output_tokens: int | None


class Retrieved(ReportModel):
    """A passage that the target returned."""

    id: str | None
    document_id: str | None
    rank: int
    score: float | None = Field(description="The retriever's own score.")
    matched: bool | None
    text: str | None = Field(description=f"At most {TEXT_CHARACTERS} characters.")


class Verdict(ReportModel):
    """A scorer's verdict where the suite gives it a threshold."""

    scorer: str
    value: float
    passed: bool
    threshold: float | None
    reason: str | None


class Example(ReportModel):
    """One question with everything that became of it."""

    id: str
    question: str
    reference_answer: str | None
    generated_answer: str | None
    retrieval: Retrieval
    answer_similarity: AnswerSimilarity
    status: str = Field(description="error, invalid_text, empty, no_reference, no_context or ok: the first that holds.")
    score_status: dict[str, str] = Field(description="Per scorer: scored, or why not.")
    score_detail: dict[str, str] = Field(description="Per scorer: more about the status, where there is more.")
    truncated: list[str] = Field(description="Scorers that saw only the beginning of a text.")
    error: str | None
    usage: Usage
    cost_usd: float | None
    row_sha256: Sha256
    retrieved: list[Retrieved] | None = Field(description="Null where the target does not say what it retrieved.")
    scores: list[Verdict]
    trials: list[dict[str, JsonValue]] | None
