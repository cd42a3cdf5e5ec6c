"""The tables between the stages: one Arrow schema each, with its grain and a description of every column.

Parquet files, Dagster's column metadata and the documentation are all derived from here. No table holds anything that
may differ between two runs over equal inputs, except `call_log`, which exists for just that.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column: name, Arrow type, description for people, and whether it may hold nulls."""

    name: str
    dtype: pa.DataType
    description: str
    nullable: bool = True


@dataclass(frozen=True)
class TableSpec:
    """One table of the lineage.

    Attributes:
        name: the asset's name and the folder it is stored under.
        description: one sentence for people.
        grain: what one row stands for.
        columns: the columns in order.
    """

    name: str
    description: str
    grain: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema; every field carries its description as metadata."""
        return pa.schema(
            [
                pa.field(c.name, c.dtype, nullable=c.nullable, metadata={"description": c.description})
                for c in self.columns
            ]
        )


PASSAGE = pa.struct(
    [
        pa.field("id", pa.string()),
        pa.field("document_id", pa.string()),
        pa.field("text", pa.string()),
        pa.field("score", pa.float64()),
    ]
)
"""One retrieved passage: its own id, its document's id, its text and the retriever's score; each may be null."""

_ROW_KEY = (
    Column("example_id", pa.string(), "Id of the example, unique within the dataset.", nullable=False),
    Column("trial", pa.int32(), "0-based index of the trial; 0 where each question is asked once.", nullable=False),
)

CORPUS = TableSpec(
    name="corpus",
    description="Manifest of the documents that the target may retrieve from: ids and hashes, not texts.",
    grain="one row per document",
    columns=(
        Column("document_id", pa.string(), "Id of the document, unique within the corpus.", nullable=False),
        Column("title", pa.string(), "Title, where the source gives one."),
        Column("text_sha256", pa.string(), "SHA-256 of the document's text (UTF-8).", nullable=False),
        Column("characters", pa.int64(), "Length of the text in Unicode code points.", nullable=False),
    ),
)

EVAL_EXAMPLES = TableSpec(
    name="eval_examples",
    description="The questions of a run with their reference answers and ground-truth contexts.",
    grain="one row per example",
    columns=(
        Column("example_id", pa.string(), "Id of the example, unique within the dataset.", nullable=False),
        Column("question", pa.string(), "The question as it is sent to the target.", nullable=False),
        Column("reference_answer", pa.string(), "The answer that the scorers compare with; null where none is known."),
        Column("context", pa.string(), "The ground-truth text that retrieval should find; null where none is known."),
        Column("context_id", pa.string(), "Document id of the context in the corpus; null where none is known."),
        Column("source", pa.string(), "Name of the file or split that the row came from.", nullable=False),
        Column("source_row", pa.int64(), "0-based row number within the source.", nullable=False),
        Column("row_sha256", pa.string(), "Hash over question, reference answer and context.", nullable=False),
    ),
)

GENERATED_ANSWERS = TableSpec(
    name="generated_answers",
    description="What the target answered to each question, and the passages it says it retrieved.",
    grain="one row per example and trial",
    columns=(
        *_ROW_KEY,
        Column("status", pa.string(), "ok, empty, invalid_text or error.", nullable=False),
        Column("answer", pa.string(), "The generated answer; null where there is none."),
        Column("error", pa.string(), "Why the call failed; null where it did not."),
        Column("generator", pa.string(), "Name of the generating model, as the target or the suite says."),
        Column("passages", pa.list_(PASSAGE), "Retrieved passages, best first; null where the target names none."),
        Column("input_tokens", pa.int64(), "Tokens that the target says it read."),
        Column("output_tokens", pa.int64(), "Tokens that the target says it wrote."),
        Column("cost_usd", pa.float64(), "Cost in US dollars at the suite's prices; null where it has none."),
    ),
)

CALL_LOG = TableSpec(
    name="call_log",
    description="How each answer was obtained: live, from the journal or replayed, and how long it took.",
    grain="one row per example and trial",
    columns=(
        *_ROW_KEY,
        Column(
            "origin",
            pa.string(),
            "live, journal (an interrupted run's answer), replayed, missing (from the recordings), kept (of an earlier "
            "run of the date, when only failed calls are made again).",
            nullable=False,
        ),
        Column("latency_ms", pa.float64(), "Milliseconds from question to answer, when it was really asked."),
        Column("attempts", pa.int32(), "How many times the call was tried.", nullable=False),
        Column("answered_at", pa.timestamp("us", tz="UTC"), "When the answer was really generated.", nullable=False),
        Column("recorded", pa.bool_(), "Whether this run wrote the call to the recordings.", nullable=False),
    ),
)

RETRIEVAL_MATCHES = TableSpec(
    name="retrieval_matches",
    description="Whether, and at which rank, the ground-truth context was among the retrieved passages.",
    grain="one row per example and trial",
    columns=(
        *_ROW_KEY,
        Column("status", pa.string(), "judged, no_context, no_passages or target_error.", nullable=False),
        Column("method", pa.string(), "How it was matched: document_id or text; null where not judged."),
        Column("retrieved", pa.int32(), "How many passages the target returned; null where it names none."),
        Column("rank", pa.int32(), "1-based rank of the best matching passage; null where none matches."),
        Column("top_k_match", pa.bool_(), "Whether rank is at most k; null where not judged."),
        Column("matched", pa.list_(pa.bool_()), "Per passage, best first: whether it matches the context."),
    ),
)


VERDICT = (
    Column("passed", pa.bool_(), "Whether the value reaches the threshold; null where there was no answer to judge."),
    Column("value", pa.float64(), "What is compared with the threshold: the score, or 0.0 where there is none."),
    Column("threshold", pa.float64(), "The suite's threshold."),
    Column("reason", pa.string(), "Why it did not pass; null where it did."),
)
"""Columns that only scorers with a threshold have."""


def score_table(name: str, description: str, values: dict[str, str], *, verdict: tuple[Column, ...] = ()) -> TableSpec:
    """The table of a scorer: row key, status, detail, perhaps a verdict, truncated, and a nullable float per value."""
    return TableSpec(
        name=name,
        description=description,
        grain="one row per example and trial",
        columns=(
            *_ROW_KEY,
            Column("status", pa.string(), "scored, or why there is no score.", nullable=False),
            Column("detail", pa.string(), "Further explanation of the status."),
            *verdict,
            Column("truncated", pa.bool_(), "Whether the model saw only the beginning of a text.", nullable=False),
            *[Column(value, pa.float64(), text) for value, text in values.items()],
        ),
    )


BERTSCORE = score_table(
    "bertscore",
    "BERTScore of each generated answer against its reference answer.",
    {
        "precision": "Mean over the candidate's tokens of the best cosine to a reference token, in [-1, 1].",
        "recall": "Mean over the reference's tokens of the best cosine to a candidate token, in [-1, 1].",
        "f1": "Harmonic mean of precision and recall.",
    },
)

SENTENCE_COSINE = score_table(
    "sentence_cosine",
    "Cosine between the sentence embeddings of each generated answer and its reference answer.",
    {"cosine": "Cosine of the two sentence embeddings, in [-1, 1]; it may be negative."},
)


def similarity_table(name: str) -> TableSpec:
    """The table of a `similarity` scorer that goes by `name`."""
    return score_table(
        name,
        "Cosine between the embeddings of each generated answer and its reference answer, against a threshold.",
        {"similarity": "Cosine of the two embeddings, in [-1, 1]; it may be negative."},
        verdict=VERDICT,
    )


def scorer_calls_table(scorer: str) -> TableSpec:
    """How a scorer that calls a service came by what it needed; a table of its own, since equal runs differ in it."""
    counts = {
        "live": "Texts that were sent to the service.",
        "replayed": "Texts whose recordings were used.",
        "recorded": "Texts that were recorded.",
        "missing": "Texts that replay found no recording of.",
        "requests": "Requests that were made, without further attempts.",
    }
    return TableSpec(
        name=f"{scorer}_calls",
        description="How the scorer's calls were answered, and what they cost.",
        grain="one row",
        columns=(
            *[Column(name, pa.int64(), text, nullable=False) for name, text in counts.items()],
            Column("tokens", pa.int64(), "Tokens of all texts, recorded ones included, as the service says."),
            Column("cost_usd", pa.float64(), "Their cost in US dollars at the suite's price; null where it has none."),
        ),
    )


SCORE_HISTORY = TableSpec(
    name="score_history",
    description="One line per report ever written, for trends; re-evaluations of a date stand beside each other.",
    grain="one row per report",
    columns=(
        Column("run_id", pa.string(), "Id of the report.", nullable=False),
        Column("run_date", pa.string(), "Run date (partition) of the evaluation, YYYY-MM-DD.", nullable=False),
        Column("timestamp", pa.timestamp("us", tz="UTC"), "When the report was built.", nullable=False),
        Column("measured_at", pa.timestamp("us", tz="UTC"), "When the newest of its answers was really generated."),
        Column("dataset_fingerprint", pa.string(), "Hash of the ordered row hashes.", nullable=False),
        Column(
            "content_sha256", pa.string(), "Hash of all of the report that equal inputs make equal.", nullable=False
        ),
        Column("n_examples", pa.int64(), "Examples attempted.", nullable=False),
        Column("n_errors", pa.int64(), "Examples whose call failed.", nullable=False),
        Column("top_k_match_rate", pa.float64(), "Matched over judged."),
        Column("mrr", pa.float64(), "Mean reciprocal rank."),
        Column("bertscore_f1_mean", pa.float64(), "Mean BERTScore F1 over scored examples."),
        Column("sentence_cosine_mean", pa.float64(), "Mean sentence cosine over scored examples."),
        Column("gate_outcome", pa.string(), "pass, fail, or none where the suite sets no gate.", nullable=False),
        Column("report", pa.string(), "Where the report lies, relative to the report folder.", nullable=False),
    ),
)

TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        CORPUS,
        EVAL_EXAMPLES,
        GENERATED_ANSWERS,
        CALL_LOG,
        RETRIEVAL_MATCHES,
        BERTSCORE,
        SENTENCE_COSINE,
        SCORE_HISTORY,
    )
}
"""Every table by name."""
