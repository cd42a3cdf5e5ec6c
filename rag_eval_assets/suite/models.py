"""The suite file as strict models: every key is known, every value checked, every message names the path.

The JSON Schema that editors use is exported from these classes, so field descriptions are written for people.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any, Literal, cast

from pydantic import (
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from rag_eval_assets.recording.modes import Mode
from rag_eval_assets.storage.s3_names import ENV_PATTERN, Addressing, Bucket, Endpoint, Region
from rag_eval_assets.suite.automation import Checks, CorpusSensor, Freshness, Notify, Schedule
from rag_eval_assets.suite.base import SuiteModel
from rag_eval_assets.suite.patterns import HUB_ID
from rag_eval_assets.suite.scorers import Scorer, Similarity
from rag_eval_assets.suite.targets import EmbeddedTarget, Target

_OWNER = r"team:.+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}"
"""What Dagster takes as an owner; anything else would only fail when the lineage is built."""

DEFAULT_START_DATE = dt.date(2026, 1, 1)
"""First run date that exists where a suite says nothing; earlier dates cannot be backfilled."""


class Columns(SuiteModel):
    """Which column of a source holds what; one that is not named here is looked for under its usual names, one that
    is `null` is not, whatever the columns are called."""

    id: str | None = Field(None, description="Column of the example's id. Usual name: id. null: rows are numbered.")
    question: str | None = Field(None, description="Column of the question. Usual names: question, input.")
    reference_answer: str | None = Field(
        None, description="Column of the reference answer. Usual names: reference_answer, answer, reference, expected."
    )
    context: str | None = Field(None, description="Column of the ground-truth context. Usual name: context.")
    context_id: str | None = Field(
        None, description="Column of the context's document id in the corpus. Usual names: context_id, document_id."
    )

    @property
    def left_out(self) -> frozenset[str]:
        """Roles that no column is to have."""
        return frozenset(role for role in self.model_fields_set if getattr(self, role) is None)

    @model_validator(mode="before")
    @classmethod
    def _false_is_null(cls, data: Any) -> Any:
        """A report tells a role that is left out as false, since null there is a role that its suite did not name."""
        if not isinstance(data, dict):
            return data
        given = cast("dict[Any, Any]", data)
        return {role: None if column is False else column for role, column in given.items()}

    @model_serializer(mode="wrap")
    def _null_is_false(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**made(self), **dict.fromkeys(self.left_out, False)}


class RandomSample(SuiteModel):
    """A random choice of examples that is the same in every run."""

    size: int = Field(ge=1, description="How many examples; all where there are fewer.")
    seed: int = Field(0, description="Another seed draws another sample.")


Where = dict[str, str | list[str]]


class _DataSet(SuiteModel):
    name: str | None = Field(None, min_length=1, description="Name in the report; by default the source's own.")
    split: str | None = Field(None, min_length=1, description="Name of the split, for the report.")
    columns: Columns = Field(default_factory=lambda: Columns.model_validate({}), description="Column mapping.")
    where: Where = Field(
        default_factory=Where,
        description="Only rows that have, in each of these columns, this text or one of these texts.",
    )
    random_sample: RandomSample | None = Field(None, description="After 'where', only a random sample.")
    limit: int | None = Field(None, ge=1, description="After 'random_sample', only the first so many examples.")


class FileDataSet(_DataSet):
    """Rows of a local file."""

    file: str | list[str] = Field(
        min_length=1,
        description="Path of a parquet, jsonl or csv file, relative to the suite file; or several, read in this order.",
    )
    format: Literal["parquet", "jsonl", "csv"] | None = Field(None, description="By default told by the file's ending.")

    @property
    def files(self) -> list[str]:
        """The file or files as a list."""
        return self.file if isinstance(self.file, list) else [self.file]


class HuggingFaceDataSet(_DataSet):
    """Rows of a data set on the Hugging Face hub."""

    huggingface: str = Field(pattern=HUB_ID, description="Id of the data set, `owner/name`.")
    revision: str = Field(
        "unverified",
        min_length=1,
        description="Commit hash (40 hexadecimal digits), branch or tag; `unverified` resolves once into a lock file.",
    )
    split: str | None = Field("test", min_length=1, description="Split to read.")

    @field_validator("split")
    @classmethod
    def _one_split_is_read(cls, split: str | None) -> str:
        if split is None:
            raise PydanticCustomError("split", "a data set of the hub needs the split to read")
        return split


class SampleDataSet(_DataSet):
    """The questions that are shipped with this package."""

    sample: Literal["builtin"] = Field(description="The packaged sample: a fictional region, written for this project.")


def _source_kind(value: Any) -> str | None:
    keys: tuple[str, ...] = ("file", "huggingface", "sample")
    if isinstance(value, dict):
        return next((key for key in keys if key in value), None)
    return next((key for key in keys if hasattr(value, key)), None)


DataSet = Annotated[
    Annotated[FileDataSet, Tag("file")]
    | Annotated[HuggingFaceDataSet, Tag("huggingface")]
    | Annotated[SampleDataSet, Tag("sample")],
    Discriminator(
        _source_kind,
        custom_error_type="data_set_source",
        custom_error_message="a data set needs one of the keys 'file', 'huggingface', 'sample'",
    ),
]


class Corpus(SuiteModel):
    """The documents that an embedded target retrieves from."""

    source: Literal["contexts", "sample", "file"] = Field(
        description="contexts: the distinct contexts of the data sets; sample: the packaged documents; file: `file`."
    )
    file: str | None = Field(
        None,
        min_length=1,
        description="Parquet, jsonl or csv file of documents with columns id, text and perhaps title.",
    )

    @model_validator(mode="after")
    def _file_goes_with_source(self) -> Corpus:
        if (self.source == "file") != (self.file is not None):
            raise PydanticCustomError("corpus_file", "'file' goes with 'source: file', and only with it")
        return self


OUT_OF_SCOPE_TYPES = ("trace", "trajectory", "json-schema", "subprocess", "accuracy", "macro_f1")
"""Types of other evaluation tools that this project leaves to them."""


class Retrieval(SuiteModel):
    """When a retrieved passage counts as the ground-truth context."""

    k: int = Field(5, ge=1, le=1000, description="top_k_match is: rank at most k.")
    match_by: Literal["auto", "document_id", "text"] = Field(
        "auto", description="auto: by document id where both sides have one, else by text."
    )
    min_words: int = Field(8, ge=1, description="A passage of fewer words never matches by text.")
    max_length_ratio: float = Field(4.0, gt=0, description="Nor does one longer than this many contexts.")
    ngram: int = Field(5, ge=1, le=20, description="Length of the word n-grams that are compared.")
    ngram_threshold: float = Field(0.5, gt=0, le=1, description="Share of n-grams found in the context that matches.")


class ModelOverride(SuiteModel):
    """Where the files of a pinned model lie."""

    folder: str = Field(min_length=1, description="Folder of the model's files, relative to the suite file.")


class RunOptions(SuiteModel):
    """How a run goes about it."""

    concurrency: int = Field(4, ge=1, le=256, description="Questions that are with the target at the same time.")
    max_error_rate: float | None = Field(
        None, ge=0, le=1, description="The stage stops when more than this share of all examples has failed."
    )
    policy: Literal["report", "all_pass"] | None = Field(
        None,
        description="report: scores never fail a run. all_pass: it fails unless every example passes every threshold. "
        "By default all_pass where a scorer has a threshold, else report.",
    )
    start_date: dt.date = Field(DEFAULT_START_DATE, strict=False, description="First run date that can be evaluated.")


class ReportBucket(SuiteModel):
    """The bucket that reports are written to; `RAG_EVAL_*` settings come before each of these keys."""

    bucket: Bucket | None = Field(None, description="Name of the bucket; one per environment.")
    region: Region | None = Field(None, description="Region of the bucket; by default that of the AWS configuration.")
    endpoint: Endpoint | None = Field(None, description="URL of an S3 service other than AWS.")
    addressing: Addressing = Field(
        "auto", description="Where the bucket's name stands in the URL: in the path, in the host name, or as it fits."
    )


class ReportOptions(SuiteModel):
    """Where reports go and how much they hold."""

    env: str = Field("dev", pattern=ENV_PATTERN, description="Environment label, the first part of the report's key.")
    s3: ReportBucket = Field(
        default_factory=lambda: ReportBucket.model_validate({}),
        description="The bucket; without one, reports are written to a local folder.",
    )
    max_examples: int = Field(
        20_000, ge=0, description="Above this many examples the JSON holds none and names the Parquet instead."
    )


class Cache(SuiteModel):
    """Recordings of calls: how each channel uses them, and where they lie."""

    target: Mode | None = Field(
        None, strict=False, description="Calls to targets. By default as the run's trigger says."
    )
    embeddings: Mode | None = Field(None, strict=False, description="Calls for embeddings. By default auto.")
    folder: str | None = Field(
        None,
        min_length=1,
        description="Folder of the cassette, relative to the suite file; by default `<suite file's stem>.cassette`.",
    )

    @field_validator("target", "embeddings", mode="before")
    @classmethod
    def _off_is_a_word(cls, mode: Any) -> Any:
        return Mode.OFF if mode is False else mode  # YAML 1.1 reads a bare `off` as false


class Suite(SuiteModel):
    """One evaluation suite."""

    name: str | None = Field(None, min_length=1, description="Name of the suite; by default the file's stem.")
    description: str | None = Field(None, description="One or two sentences for people.")
    owners: list[str] = Field(
        default_factory=lambda: ["team:rag-evaluation"],
        description="Owners of the assets: e-mail addresses, or `team:name`.",
    )
    datasets: list[DataSet] = Field(min_length=1, description="Sources of the examples, merged in this order.")
    corpus: Corpus | None = Field(None, description="The documents; needed by embedded targets.")
    targets: dict[str, Target] = Field(min_length=1, description="What is evaluated, by name.")
    scorers: list[Scorer] = Field(min_length=1, description="How answers are compared with references.")
    retrieval: Retrieval = Field(
        default_factory=lambda: Retrieval.model_validate({}), description="Matching of passages to contexts."
    )
    models: dict[str, ModelOverride] = Field(
        default_factory=dict[str, ModelOverride], description="Local folders of models, by model id."
    )
    run: RunOptions = Field(default_factory=lambda: RunOptions.model_validate({}), description="Run options.")
    report: ReportOptions = Field(
        default_factory=lambda: ReportOptions.model_validate({}), description="Report options."
    )
    cache: Cache = Field(default_factory=lambda: Cache.model_validate({}), description="Recordings of calls.")
    checks: Checks = Field(
        default_factory=lambda: Checks.model_validate({}), description="Bounds of the checks, and which of them block."
    )
    schedule: Schedule | None = Field(None, description="When Dagster evaluates the suite by itself.")
    corpus_sensor: CorpusSensor | None = Field(None, description="Evaluation after a change of the corpus.")
    notify: Notify | None = Field(None, description="Who is told of a failed run.")
    freshness: Freshness | None = Field(None, description="How old the newest report may be.")

    @property
    def policy(self) -> Literal["report", "all_pass"]:
        """When scores fail a run."""
        has_threshold = any(isinstance(scorer, Similarity) for scorer in self.scorers)
        return self.run.policy or ("all_pass" if has_threshold else "report")

    @field_validator("owners")
    @classmethod
    def _owners_are_addresses_or_teams(cls, owners: list[str]) -> list[str]:
        for owner in owners:
            if not re.fullmatch(_OWNER, owner):
                raise PydanticCustomError(
                    "owner", "owner {owner} is neither an e-mail address nor 'team:<name>'", {"owner": repr(owner)}
                )
        return owners

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Suite:
        names = [scorer.name for scorer in self.scorers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            hint = " (give each a 'name')" if twice[0] == "similarity" else ""
            raise PydanticCustomError(
                "scorer_twice", "scorer {name} is listed twice{hint}", {"name": repr(twice[0]), "hint": hint}
            )
        if self.corpus is None and any(isinstance(target, EmbeddedTarget) for target in self.targets.values()):
            raise PydanticCustomError(
                "corpus_missing", "an embedded target needs 'corpus' (such as 'corpus: {source: contexts}')"
            )
        return self
