"""Parquet files of other writers: every form of text is read, what is no text is refused by name and type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite

SuiteOver = Callable[..., LoadedSuite]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_columns(**columns: pa.Array) -> Path:
        path = tmp_path / "d.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write_columns


@pytest.mark.parametrize(
    "dtype",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_every_form_of_text_is_read(write: Callable[..., Path], suite_over: SuiteOver, dtype: pa.DataType) -> None:
    plain = pa.array(["a", None, "ü😀", "a"])
    write(question=plain.dictionary_encode() if pa.types.is_dictionary(dtype) else plain.cast(dtype))
    examples = load_examples(suite_over("d.parquet"))
    assert examples.table.column("question").to_pylist() == ["a", "ü😀", "a"]
    assert [excluded.row for excluded in examples.excluded] == [1]


def test_a_column_of_nothing_but_nulls_is_a_column_of_no_text(
    write: Callable[..., Path], suite_over: SuiteOver
) -> None:
    write(question=pa.array(["a"]), answer=pa.nulls(1))
    assert load_examples(suite_over("d.parquet")).table.column("reference_answer").to_pylist() == [None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1]), "int64"),
        (pa.array([1.5]), "double"),
        (pa.array([b"bytes"]), "binary"),
        (pa.array([{"text": "a"}]), "struct"),
        (pa.array([["a"]]), "list"),
    ],
)
@pytest.mark.parametrize("column", ["question", "answer", "context"])
def test_what_is_no_text_is_refused_by_name_and_type(
    write: Callable[..., Path], suite_over: SuiteOver, values: pa.Array, kind: str, column: str
) -> None:
    write(**{"question": pa.array(["a"]), column: values})
    with pytest.raises(ConfigurationError, match=rf"'d\.parquet': column '{column}' holds {kind}.*, not text"):
        load_examples(suite_over("d.parquet"))


def test_whole_numbers_are_good_ids_under_any_name(write: Callable[..., Path], suite_over: SuiteOver) -> None:
    write(nr=pa.array([7, 8]), question=pa.array(["a", "b"]), document_id=pa.array([1, None], pa.int32()))
    table = load_examples(suite_over({"file": "d.parquet", "columns": {"id": "nr"}})).table
    assert table.column("example_id").to_pylist() == ["7", "8"]
    assert table.column("context_id").to_pylist() == ["1", None]


def test_documents_need_text_but_may_have_numbers_as_ids(write: Callable[..., Path], suite_over: SuiteOver) -> None:
    corpus = {"source": "file", "file": "d.parquet"}
    write(id=pa.array([1, 2]), text=pa.array(["a", "b"]))
    assert [document.id for document in load_corpus(suite_over("x.csv", corpus=corpus)).documents] == ["1", "2"]
    write(id=pa.array([1, 2]), text=pa.array([3, 4]))
    with pytest.raises(ConfigurationError, match="column 'text' holds int64, not text"):
        load_corpus(suite_over("x.csv", corpus=corpus))


def test_columns_that_nobody_asked_for_may_hold_anything(write: Callable[..., Path], suite_over: SuiteOver) -> None:
    write(question=pa.array(["a"]), embedding=pa.array([[0.5]]), meta=pa.array([{"x": 1}]))
    assert load_examples(suite_over("d.parquet")).total == 1


def test_more_rows_than_a_batch_keep_their_order(write: Callable[..., Path], suite_over: SuiteOver) -> None:
    write(question=pa.array([f"question {number}" for number in range(2_500)]))
    table = load_examples(suite_over("d.parquet")).table
    assert table.column("question").to_pylist() == [f"question {number}" for number in range(2_500)]
    assert table.column("source_row").to_pylist() == list(range(2_500))


def test_a_file_without_rows_holds_no_example(write: Callable[..., Path], suite_over: SuiteOver) -> None:
    write(question=pa.array([], pa.string()))
    with pytest.raises(ConfigurationError, match=r"'d\.parquet' has a header and no row"):
        load_examples(suite_over("d.parquet"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"question,answer\na,b\n",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:-9] + b"\xff" + content[-8:],
    ],
    ids=["empty", "another format", "first half", "last byte gone", "footer overwritten"],
)
def test_a_file_that_is_no_parquet_is_one_clear_line(
    write: Callable[..., Path], suite_over: SuiteOver, damage: Callable[[bytes], bytes]
) -> None:
    path = write(question=pa.array(["a"] * 100))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ConfigurationError, match=r"data file 'd\.parquet' cannot be read as parquet \(") as caught:
        load_examples(suite_over("d.parquet"))
    assert "\n" not in str(caught.value)


def test_damage_between_intact_ends_is_one_clear_line(write: Callable[..., Path], suite_over: SuiteOver) -> None:
    path = write(question=pa.array([f"question {number} " * 5 for number in range(3_000)]))
    content = bytearray(path.read_bytes())
    content[4:2_000] = bytes(1_996)
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"data file 'd\.parquet' cannot be read as parquet \("):
        load_examples(suite_over("d.parquet"))


def test_text_that_is_no_utf8_is_one_clear_line(tmp_path: Path, suite_over: SuiteOver) -> None:
    raw: Any = pa.array([b"fine", b"Z\xfcrich"], pa.binary())
    text = pa.StringArray.from_buffers(2, *raw.buffers()[1:])
    pq.write_table(pa.table({"question": text}), tmp_path / "d.parquet")
    with pytest.raises(ConfigurationError, match=r"data file 'd\.parquet' cannot be read as parquet \("):
        load_examples(suite_over("d.parquet"))
