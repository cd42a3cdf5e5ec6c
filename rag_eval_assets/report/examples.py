"""The per-example table: all that is known of each example side by side, a row per example in the data set's order.

Every number of the report comes from this table, and it holds nothing that differs between two runs of equal inputs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.status import AnswerStatus, MatchStatus, ScoreStatus
from rag_eval_assets.tables import EVAL_EXAMPLES, GENERATED_ANSWERS, RETRIEVAL_MATCHES, VERDICT, Column, TableSpec

CODE_VERSION = "1"
"""Raised whenever the same tables would give another per-example table."""

METRICS_KEY = "metrics"
"""Schema metadata: a JSON object from each metric's column to its scorer."""

NO_ANSWER_ROW = "the target was not asked"

VERDICT_COLUMNS = tuple(column.name for column in VERDICT)
_KEY_COLUMNS = ("example_id", "trial", "status", "detail", *VERDICT_COLUMNS, "truncated")


def _taken(spec: TableSpec, *names: str, prefix: str = "") -> list[Column]:
    by_name = {column.name: column for column in spec.columns}
    return [
        Column(prefix + name, by_name[name].dtype, by_name[name].description, by_name[name].nullable) for name in names
    ]


_BASE_COLUMNS = (
    *_taken(EVAL_EXAMPLES, "example_id", "question", "reference_answer", "context", "context_id", "row_sha256"),
    Column("status", pa.string(), "error, invalid_text, empty, no_reference, no_context or ok.", nullable=False),
    *_taken(GENERATED_ANSWERS, "answer", "error", "generator", "passages"),
    *_taken(RETRIEVAL_MATCHES, "status", "method", prefix="retrieval_"),
    *_taken(RETRIEVAL_MATCHES, "rank", "top_k_match", "matched"),
)
_USAGE_COLUMNS = tuple(_taken(GENERATED_ANSWERS, "input_tokens", "output_tokens", "cost_usd"))


def metric_name(scorer: str, value: str) -> str:
    """Name of a score in tables and summaries: `<scorer>_<value>`; the scorer's own name where it has one value."""
    alone = (scorer, value) == ("sentence_cosine", "cosine") or value == "similarity"
    return scorer if alone else f"{scorer}_{value}"


def row_metrics(rows: pa.Table) -> dict[str, str]:
    """The metrics of a per-example table and the scorer of each, in column order.

    Raises:
        ConfigurationError: the table is no per-example table.
    """
    found = (rows.schema.metadata or {}).get(METRICS_KEY.encode())
    if found is None:
        raise ConfigurationError(f"the table's metadata holds no {METRICS_KEY!r}", fix="Give a per-example table")
    metrics: dict[str, str] = json.loads(found)
    return metrics


def example_rows(examples: pa.Table, answers: pa.Table, matches: pa.Table, scores: Mapping[str, pa.Table]) -> pa.Table:
    """Join the tables of a run into one row per example.

    Where an example has several trials, answer and scores are those of its first trial, and passages and retrieval
    those of its first judged one. The status is the first that holds of: `error` (the call failed), `invalid_text`,
    `empty`, `no_reference` (none, or a blank one), `no_context`, `ok`.

    Args:
        examples: schema `tables.EVAL_EXAMPLES`.
        answers: schema `tables.GENERATED_ANSWERS`.
        matches: schema `tables.RETRIEVAL_MATCHES`.
        scores: score tables (`tables.score_table`) by scorer.

    Raises:
        ConfigurationError: two scorers give columns of one name.
    """
    ids = _filled(examples["example_id"], "")
    answer_index = _first_rows(ids, answers)
    match_index = _first_rows(ids, matches, preferred=MatchStatus.JUDGED)
    answered = _take(answers, answer_index)
    matched = _take(matches, match_index)
    answer_status = _filled(answered["status"], AnswerStatus.ERROR)
    match_status = _filled(matched["status"], MatchStatus.TARGET_ERROR)
    references = examples["reference_answer"]
    errors = [
        error if row is not None else NO_ANSWER_ROW
        for error, row in zip(answered["error"].to_pylist(), answer_index, strict=True)
    ]
    columns: dict[str, Any] = {
        **{name: examples[name] for name in ("example_id", "question", "reference_answer", "context", "context_id")},
        "row_sha256": examples["row_sha256"],
        "status": [
            _status(answer, match, reference.as_py())
            for answer, match, reference in zip(answer_status, match_status, references, strict=True)
        ],
        "answer": answered["answer"],
        "error": errors,
        "generator": answered["generator"],
        "passages": _take(answers.select(["passages"]), _passage_rows(answers, matches, answer_index, match_index))[
            "passages"
        ],
        "retrieval_status": match_status,
        "retrieval_method": matched["method"],
        **{name: matched[name] for name in ("rank", "top_k_match", "matched")},
        **{name: answered[name] for name in ("input_tokens", "output_tokens", "cost_usd")},
    }
    specs = list(_BASE_COLUMNS)
    metrics: dict[str, str] = {}
    for scorer, table in scores.items():
        for column, values, is_metric in _score_columns(scorer, _take(table, _first_rows(ids, table))):
            if column.name in columns:
                raise ConfigurationError(
                    f"scorer {scorer!r}: column {column.name!r} stands twice", fix="Rename one scorer"
                )
            specs.append(column)
            columns[column.name] = values
            if is_metric:
                metrics[column.name] = scorer
    spec = TableSpec("examples", "All that is known of each example.", "one row per example", (*specs, *_USAGE_COLUMNS))
    schema = pa.schema(list(spec.schema), metadata={METRICS_KEY: json.dumps(metrics)})
    return pa.Table.from_pydict({name: columns[name] for name in schema.names}, schema=schema)


def _status(answer: str, match: str, reference: str | None) -> str:
    if answer != AnswerStatus.OK:
        return answer
    if reference is None or not reference.strip():
        return ScoreStatus.NO_REFERENCE.value
    return MatchStatus.NO_CONTEXT.value if match == MatchStatus.NO_CONTEXT else AnswerStatus.OK.value


def _score_columns(scorer: str, table: pa.Table) -> list[tuple[Column, Sequence[Any], bool]]:
    """The columns of one scorer, each with its values and whether it is a metric.

    A value is there exactly where the status says `scored`; a number that is not finite is the scorer's error.
    """
    statuses = _filled(table["status"], ScoreStatus.SCORER_ERROR)
    details: list[str | None] = table["detail"].to_pylist()
    names = [name for name in table.schema.names if name not in _KEY_COLUMNS]
    values: dict[str, list[float | None]] = {name: table[name].to_pylist() for name in names}
    for row, status in enumerate(statuses):
        found = [column[row] for column in values.values()]
        if status == ScoreStatus.SCORED and not all(v is not None and math.isfinite(v) for v in found):
            statuses[row], details[row] = ScoreStatus.SCORER_ERROR.value, "the score is not a finite number"
        if statuses[row] != ScoreStatus.SCORED:
            for column in values.values():
                column[row] = None
    truncated = [bool(value) for value in table["truncated"].to_pylist()]
    return [
        (Column(f"{scorer}_status", pa.string(), "scored, or why there is no score.", nullable=False), statuses, False),
        (Column(f"{scorer}_detail", pa.string(), "Further explanation of the status."), details, False),
        (
            Column(f"{scorer}_truncated", pa.bool_(), "Whether only the beginning of a text was seen.", nullable=False),
            truncated,
            False,
        ),
        *[
            (Column(f"{scorer}_{column.name}", column.dtype, column.description), table[column.name].to_pylist(), False)
            for column in VERDICT
            if column.name in table.schema.names
        ],
        *[
            (Column(metric_name(scorer, name), pa.float64(), f"{name} of {scorer}."), column, True)
            for name, column in values.items()
        ],
    ]


def _first_rows(ids: Sequence[str], table: pa.Table, preferred: str | None = None) -> list[int | None]:
    """For each example its row in `table`: the lowest trial, before that the lowest with the preferred status."""
    best: dict[str, tuple[tuple[bool, int], int]] = {}
    keys = zip(_filled(table["example_id"], ""), table["trial"].to_pylist(), table["status"].to_pylist(), strict=True)
    for row, (example_id, trial, status) in enumerate(keys):
        order = (preferred is not None and status != preferred, int(trial or 0))
        if example_id not in best or order < best[example_id][0]:
            best[example_id] = (order, row)
    return [best[example_id][1] if example_id in best else None for example_id in ids]


def _passage_rows(
    answers: pa.Table, matches: pa.Table, answer_index: Sequence[int | None], match_index: Sequence[int | None]
) -> list[int | None]:
    """The rows of `answers` whose passages were judged in the matches that are shown."""
    trials = zip(answers["example_id"].to_pylist(), answers["trial"].to_pylist(), strict=True)
    at = {key: row for row, key in enumerate(trials)}
    judged = list(zip(matches["example_id"].to_pylist(), matches["trial"].to_pylist(), strict=True))
    return [
        answer if match is None else at.get(judged[match], answer)
        for answer, match in zip(answer_index, match_index, strict=True)
    ]


def _filled(column: pa.ChunkedArray[Any], missing: str) -> list[str]:
    return [str(missing) if value is None else value for value in column.to_pylist()]


def _take(table: pa.Table, index: Sequence[int | None]) -> pa.Table:
    """Rows by position, a row of nulls for None; without a copy in the usual case that all stand in order already."""
    if list(index) == list(range(table.num_rows)):
        return table
    return table.take(pa.array(index, pa.int64()))
