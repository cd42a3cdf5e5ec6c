"""The public `rag_eval_assets.score`, as a script would call it."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rag_eval_assets
from rag_eval_assets import score
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring import api
from rag_eval_assets.weights.registry import REGISTRY
from rag_eval_assets.weights.resolve import ResolvedModel

ROOT = Path(__file__).parents[2]
MINILM = {"bertscore": "all-MiniLM-L6-v2"}

pytestmark = pytest.mark.usefixtures("minilm")


def test_a_row_per_pair_with_values_status_and_truncation() -> None:
    table = score(
        ["It opens at nine.", None, "word " * 400, "anything"],
        ["It opens at 9 a.m.", "A reference.", ["Other.", "word word"], []],
        models=MINILM,
    )
    assert table.schema == pa.schema(
        [
            ("bertscore_precision", pa.float64()),
            ("bertscore_recall", pa.float64()),
            ("bertscore_f1", pa.float64()),
            ("sentence_cosine", pa.float64()),
            ("bertscore_status", pa.string()),
            ("bertscore_truncated", pa.bool_()),
            ("sentence_cosine_status", pa.string()),
            ("sentence_cosine_truncated", pa.bool_()),
        ]
    )
    statuses = ["scored", "no_answer", "scored", "no_reference"]
    assert table["bertscore_status"].to_pylist() == statuses
    assert table["sentence_cosine_status"].to_pylist() == statuses
    # 400 word pieces: more than the 254 of the sentence encoder, fewer than the 510 of BERTScore.
    assert table["bertscore_truncated"].to_pylist() == [False] * 4
    assert table["sentence_cosine_truncated"].to_pylist() == [False, False, True, False]
    for name in table.column_names[:4]:
        assert [value is None for value in table[name].to_pylist()] == [False, True, False, True]


def test_one_scorer_gives_its_columns_alone() -> None:
    table = score(["a"], ["b"], scorers=["sentence_cosine"])
    assert table.column_names == ["sentence_cosine", "sentence_cosine_status", "sentence_cosine_truncated"]


def test_columns_of_a_table_are_taken_as_they_are() -> None:
    texts = pa.table({"answer": ["a dog", None], "reference": [["a cat", "a dog"], None]})
    table = score(texts["answer"], texts["reference"], scorers=["sentence_cosine"], engine="reference")
    assert table["sentence_cosine"].to_pylist() == [pytest.approx(1.0), None]


def test_no_pairs_give_no_rows_but_all_columns() -> None:
    table = score([], [], models=MINILM)
    assert (table.num_rows, table.num_columns) == (0, 8)
    assert table["bertscore_f1"].type == pa.float64()


def test_the_example_in_its_documentation_runs() -> None:
    results = doctest.testmod(api, extraglobs={"score": score})
    assert (results.attempted, results.failed) == (2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": ["a", "b"], "references": ["a"]}, "2 candidates and 1 references"),
        ({"scorers": ["sentence_cosin"]}, "'sentence_cosin'.*Did you mean 'sentence_cosine'"),
        ({"models": {"bertscor": "all-MiniLM-L6-v2"}}, "'bertscor'.*Did you mean 'bertscore'"),
        ({"models": {"bertscore": "all-MiniLM-L6-v3"}}, "'all-MiniLM-L6-v3'.*Did you mean 'all-MiniLM-L6-v2'"),
        ({"engine": "referenc"}, "'referenc'.*Did you mean 'reference'"),
        ({"candidates": "a"}, "candidates is one text"),
        ({"references": "a"}, "references is one text"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        score(**{"candidates": ["a"], "references": ["a"], **arguments})  # pyright: ignore[reportArgumentType]


def test_a_default_model_that_is_missing_is_an_error_and_never_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bert-base-uncased").mkdir()
    monkeypatch.setenv("RAG_EVAL_MODELS_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError) as error:
        score(["a"], ["b"])
    assert REGISTRY["bert-base-uncased"].revision in str(error.value)
    assert "name another model for bertscore (all-MiniLM-L6-v2)" in str(error.value)


def test_importing_the_package_imports_neither_pyarrow_nor_torch_and_still_knows_its_names() -> None:
    code = """
import sys, rag_eval_assets
print(sorted({"pyarrow", "torch", "dagster", "numpy"} & set(sys.modules)), "score" in dir(rag_eval_assets))
from rag_eval_assets import score
print(sorted({"torch", "transformers", "sentence_transformers", "bert_score", "dagster"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[] True", "[]"]


def test_the_package_is_typed_versioned_and_refuses_unknown_names(minilm: ResolvedModel) -> None:
    del minilm
    assert (Path(rag_eval_assets.__file__).parent / "py.typed").is_file()
    assert rag_eval_assets.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        getattr(rag_eval_assets, "scores")  # noqa: B009 - pyright would refuse the plain form
