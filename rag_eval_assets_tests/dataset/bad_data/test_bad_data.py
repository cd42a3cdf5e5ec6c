"""Every hostile input ends as the table in `cases` says: loaded just so, or refused in one clear line."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_eval_assets.dataset.corpus import load_corpus
from rag_eval_assets.dataset.examples import load_examples
from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import LoadedSuite

HERE = Path(__file__).parent
SuiteOver = Callable[..., LoadedSuite]


def _module(name: str) -> ModuleType:
    """A module of this folder, which is on no search path."""
    spec = importlib.util.spec_from_file_location(f"bad_data_{name}", HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


makers, table = _module("makers"), _module("cases")


@pytest.fixture(autouse=True)
def no_long_wait() -> Iterator[None]:
    """A reader that waits for a pipe would wait for ever."""

    def stop(*_: Any) -> None:
        raise TimeoutError("it took longer than a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def lay(case: Any, folder: Path) -> None:
    """Make the input of a case."""
    path = folder / case.file
    if case.made is None:
        shutil.copyfile(HERE / "files" / case.file, path)
    elif isinstance(case.made, bytes):
        path.write_bytes(case.made)
    else:
        getattr(makers, case.made)(path)


def suite_of(case: Any, folder: Path, suite_over: SuiteOver) -> LoadedSuite:
    lay(case, folder)
    if case.documents:
        (folder / "one row.jsonl").write_text('{"question": "q"}\n')
        return suite_over("one row.jsonl", corpus={"source": "file", "file": case.file})
    data_set = {"file": case.file, "columns": case.columns, **({"format": case.format} if case.format else {})}
    wants_contexts = isinstance(case.expected, table.Loaded) and any(row[3] for row in case.expected.rows)
    needs_contexts = wants_contexts or getattr(case.expected, "no_corpus", None) is not None
    return suite_over(data_set, corpus={"source": "contexts"} if needs_contexts else {"source": "sample"})


def assert_refused(
    load: Callable[[LoadedSuite], object], suite: LoadedSuite, file: str, message: str | None = None
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        load(suite)
    line = str(caught.value)
    assert "\n" not in line and "\r" not in line
    assert len(line) < 700, "a line that a person reads"
    assert file in line or "suite 'tested'" in line


@pytest.mark.parametrize("case", table.CASES, ids=str)
def test_every_hostile_input_ends_as_written_down(case: Any, tmp_path: Path, suite_over: SuiteOver) -> None:
    if case.made == "without_permission" and os.geteuid() == 0:
        pytest.skip("root may read every file")
    suite, expected = suite_of(case, tmp_path, suite_over), case.expected
    if isinstance(expected, table.Refused):
        return assert_refused(load_examples, suite, case.file, expected.message)
    examples = load_examples(suite)
    columns = ("example_id", "question", "reference_answer", "context")
    assert [tuple(row[name] for name in columns) for row in examples.table.to_pylist()] == expected.rows
    assert [(excluded.row, excluded.reason) for excluded in examples.excluded] == expected.excluded
    if expected.no_corpus is not None:
        assert_refused(load_corpus, suite, case.file, expected.no_corpus)
    elif case.documents or any(row[3] for row in expected.rows):
        distinct = list(dict.fromkeys(row[3] for row in expected.rows if row[3]))
        wanted = distinct if expected.documents is None else expected.documents
        assert [document.text for document in load_corpus(suite).documents] == wanted
    return None


REFUSED_AS_CORPUS = [case for case in table.CASES if isinstance(case.expected, table.Refused) and not case.columns]


@pytest.mark.parametrize("case", REFUSED_AS_CORPUS, ids=str)
def test_what_is_refused_as_a_data_set_never_breaks_a_corpus_either(
    case: Any, tmp_path: Path, suite_over: SuiteOver
) -> None:
    if case.made == "without_permission" and os.geteuid() == 0:
        pytest.skip("root may read every file")
    lay(case, tmp_path)
    for corpus in ({"source": "contexts"}, {"source": "file", "file": case.file}):
        assert_refused(load_corpus, suite_over(case.file, corpus=corpus), case.file)


@pytest.mark.parametrize("name", table.AT_THE_COMMAND_LINE)
def test_a_run_over_it_is_one_line_and_exit_code_2_and_writes_nothing(
    name: str, tmp_path: Path, suite_over: SuiteOver, in_new_process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (case,) = (case for case in table.CASES if str(case) == name)
    suite = suite_of(case, tmp_path, suite_over)
    before = sorted(tmp_path.rglob("*"))
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"), "RAG_EVAL_HOME": str(tmp_path / "home")}
    done = in_new_process("-m", "rag_eval_assets.cli", "run", str(suite.path), cwd=tmp_path, **offline)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert re.search(case.expected.message, line)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_corpus_of_bad_data_is_as_large_as_promised_and_uses_all_its_files() -> None:
    names = [str(case) for case in table.CASES]
    assert len(names) == len(set(names)) >= 60
    assert {case.file for case in table.CASES if case.made is None} == {
        path.name for path in (HERE / "files").iterdir()
    }
    assert {case.made for case in table.CASES if isinstance(case.made, str)} == {
        name
        for name, value in vars(makers).items()
        if callable(value) and value.__module__ == makers.__name__ and name[0] != "_"
    }
