"""The shape of the evaluation report as pydantic models; file, JSON Schema and Python API are all this one shape.

Writing is strict: an unknown field is a mistake. Reading (`read.py`) tolerates what a later minor version added.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from rag_eval_assets.report.schema_base import Interval, ReportModel, Sha256, Unit, UtcTime
from rag_eval_assets.report.schema_example import Example
from rag_eval_assets.report.schema_origin import Origin

SCHEMA_VERSION = "1.1.0"
"""Minor: fields were added. Major: a field of the contract changed its name, place or meaning."""

EXCLUDED_ROWS = 100
"""Rows listed in `dataset.excluded`; all are counted."""


class MeasuredAt(ReportModel):
    """When the answers were really generated, whatever the run date says."""

    first: UtcTime | None
    last: UtcTime | None
    days_after_run_date: int | None = Field(
        description="Days from the run date to `last`: above 1, the date was filled in later and shows today's system."
    )


class ExcludedRow(ReportModel):
    """A row of the data set that is no example."""

    source: str
    row: int = Field(description="0-based row number within the source.")
    reason: str


class Excluded(ReportModel):
    """Rows that are no example."""

    count: int
    rows: list[ExcludedRow] = Field(description=f"At most {EXCLUDED_ROWS} of them.")


class Dataset(ReportModel):
    """What was asked."""

    name: str
    split: str | None
    n_examples: int = Field(description="Examples attempted.")
    excluded: Excluded
    revision: str | None
    fingerprint: Sha256 = Field(description="Hash of the ordered row hashes.")
    sample: str | None = Field(description="How the examples were limited; null where all were asked.")


class Corpus(ReportModel):
    """What the target may retrieve from."""

    fingerprint: str
    documents: int


class Model(ReportModel):
    """A model that scored, by what it really is, and the scorer's settings; scorers may say more of themselves."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]  # pyright: ignore[reportIncompatibleVariableOverride]

    id: str
    repo: str | None = None
    revision: str | None = None
    weights_sha256: str | None = None
    layer: int | None = Field(None, description="Layer of the token embeddings (BERTScore).")
    max_tokens: int | None = Field(None, description="Longer texts are truncated and marked.")
    rescaled: bool | None = Field(None, description="Whether scores are rescaled with a baseline (BERTScore).")
    engine: str | None = None
    libraries: dict[str, str] | None = Field(
        None,
        description="Releases of the libraries that scored. Part of the content: another release may score otherwise.",
    )


class Models(ReportModel):
    """Every model of the run; further scorers stand under their name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Model | None]  # pyright: ignore[reportIncompatibleVariableOverride]

    generator: str | list[str] = Field(description="Who answered, as far as known; a list where several did.")
    bertscore: Model | None
    sentence_transformer: Model | None


class Counts(ReportModel):
    """What became of the questions: the last four add up to `attempted`."""

    attempted: int
    answered: int
    empty: int = Field(description="Answered with an empty or blank text.")
    invalid_text: int
    errored: int = Field(description="The call failed.")


class Matching(ReportModel):
    """The declared rule by which a passage counts as the context, and what it did."""

    match_by: Literal["auto", "document_id", "text"]
    min_words: int
    max_length_ratio: float
    ngram: int
    ngram_threshold: float
    methods: dict[str, int] = Field(description="Judged examples by how they were compared.")
    statuses: dict[str, int] = Field(description="Examples by status; they add up to those attempted.")


class RetrievalSummary(ReportModel):
    """Rank metrics over judged examples; null where none was judged."""

    top_k_match_rate: Unit | None = Field(description="n_matched / n_judged.")
    top_k_match_rate_ci95: Interval | None = Field(description="Wilson interval; null below 20 judged examples.")
    k: int
    hit_rate_1: Unit | None = Field(validation_alias="hit_rate@1", serialization_alias="hit_rate@1")
    hit_rate_3: Unit | None = Field(
        validation_alias="hit_rate@3", serialization_alias="hit_rate@3", description="Null where k is below 3."
    )
    hit_rate_5: Unit | None = Field(
        validation_alias="hit_rate@5", serialization_alias="hit_rate@5", description="Null where k is below 5."
    )
    hit_rate_10: Unit | None = Field(
        validation_alias="hit_rate@10", serialization_alias="hit_rate@10", description="Null where k is below 10."
    )
    mrr: Unit | None = Field(description="Mean of 1/rank, 0 for a miss.")
    ndcg_k: Unit | None = Field(
        validation_alias="ndcg@k",
        serialization_alias="ndcg@k",
        description="Mean of 1/log2(rank+1) where rank <= k, else 0.",
    )
    n_judged: int
    n_matched: int = Field(description="Judged examples with rank <= k.")
    matching: Matching


class MetricSummary(ReportModel):
    """One score over all examples. Statistics are over scored examples and null where there are too few of them."""

    scorer: str = Field(description="The scorer that it belongs to.")
    mean: float | None
    p10: float | None = Field(description="Percentiles use linear interpolation.")
    p50: float | None
    p90: float | None
    std: float | None = Field(description="Sample standard deviation (n - 1).")
    min: float | None
    max: float | None
    ci95: Interval | None = Field(description="95 % BCa bootstrap interval of the mean; null below 20 scores.")
    mean_with_failures_as_zero: float | None = Field(
        description="Unscored examples count 0.0, except those whose call failed, which count nowhere."
    )
    n_passed: int | None = Field(None, description="Examples that reach the threshold; null where there is none.")
    pass_rate: Unit | None = Field(None, description="n_passed / attempted; a call that failed has not passed.")
    attempted: int = Field(description="n_scored and unscored_by_status add up to it.")
    n_scored: int
    n_truncated: int = Field(description="Scored examples of which the model saw only the beginning of a text.")
    errored: int = Field(description="Of target or scorer.")
    no_reference: int = Field(description="No reference answer, or a blank one.")
    unscored_by_status: dict[str, int]


class AnswerSimilaritySummary(ReportModel):
    """A summary per score; those of further scorers stand under `<scorer>_<value>`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, MetricSummary]  # pyright: ignore[reportIncompatibleVariableOverride]

    bertscore_f1: MetricSummary
    bertscore_precision: MetricSummary
    bertscore_recall: MetricSummary
    sentence_cosine: MetricSummary

    def metrics(self) -> dict[str, MetricSummary]:
        """All summaries by name, the four that always stand first."""
        own = {name: getattr(self, name) for name in type(self).model_fields}
        return {**own, **(self.__pydantic_extra__ or {})}


class GateResult(ReportModel):
    """One condition that the suite set."""

    name: str
    outcome: Literal["pass", "fail"]
    value: float | None
    threshold: float | None
    reason: str | None = None


class Gates(ReportModel):
    """Whether the suite's conditions held; `none` where it sets none, which is the default."""

    outcome: Literal["none", "pass", "fail"] = "none"
    results: list[GateResult] = Field(default_factory=list[GateResult])


class ExamplesTable(ReportModel):
    """The Parquet with the per-example table."""

    key: str = Field(description="Where it lies, relative to the report folder or bucket.")
    sha256: Sha256


class Latency(ReportModel):
    """Milliseconds from question to answer, over answers that were really asked for."""

    p50: float | None
    p90: float | None
    p99: float | None


class Calls(ReportModel):
    """How the answers were obtained."""

    live: int
    journal: int = Field(description="Taken over from an interrupted run of the same date.")
    replayed: int
    recorded: int
    missing: int = Field(0, description="Replay found no recording of them.")
    kept: int = Field(0, description="Of an earlier run of the date, when only failed calls were made again.")


class ScorerCalls(ReportModel):
    """How a scorer that calls a service came by the embeddings of the texts."""

    live: int
    replayed: int
    recorded: int
    missing: int
    requests: int = Field(description="Of one or several texts each, without further attempts.")
    tokens: int | None = Field(description="Of all texts, as the service said when each was really sent.")
    cost_usd: float | None = Field(description="Of these tokens at the suite's price; recorded ones count as well.")


class Host(ReportModel):
    """The machine, as far as it bears on numbers and speed; no names, no paths."""

    instruction_set: str
    cpu_count: int
    python: str
    system: str
    machine: str


class InputTable(ReportModel):
    """Which version of a table went in."""

    dagster_run_id: str | None
    materialized_at: UtcTime | None
    data_version: str | None
    code_version: str | None


class Run(ReportModel):
    """Everything that may differ between two runs of equal inputs."""

    run_date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    dagster_run_id: str | None
    env: str
    seconds: dict[str, float] = Field(description="By stage.")
    latency_ms: Latency
    calls: Calls
    scorer_calls: dict[str, ScorerCalls] = Field(
        default_factory=dict[str, ScorerCalls], description="By scorer that calls a service."
    )
    host: Host
    versions: dict[str, str] = Field(description="Of the libraries, by package.")
    inputs: dict[str, InputTable]
    origin: Origin | None = Field(None, description="The suite; null in reports that were made before it was kept.")


class Report(ReportModel):
    """The evaluation of one target of a suite on one run date."""

    schema_version: str = SCHEMA_VERSION
    run_id: str
    timestamp: UtcTime = Field(description="When the report was built.")
    measured_at: MeasuredAt
    suite: str
    target: str
    dataset: Dataset
    corpus: Corpus | None
    models: Models
    counts: Counts
    retrieval_summary: RetrievalSummary
    answer_similarity_summary: AnswerSimilaritySummary
    gates: Gates
    notes: list[str] = Field(description="What a reader must know to judge the numbers.")
    content_sha256: Sha256 = Field(
        description="Hash of all but run, run_id, timestamp, measured_at, examples_table and itself."
    )
    run: Run
    examples_truncated: bool = Field(description="Too many examples for JSON: they stand in `examples_table` alone.")
    examples_sha256: Sha256 = Field(description="Hash over all examples as JSON, also those not listed here.")
    examples_table: ExamplesTable | None
    examples: list[Example]

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values, keys as in the file."""
        return self.model_dump(mode="json")
