"""The shell target: a command per question, with its failures, its time limit and its leftovers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.targets.base import Answer, Passage

Ask = Callable[..., Answer]


def target(program: str, **further: Any) -> dict[str, Any]:
    return {"type": "shell", "command": [sys.executable, "-S", "-c", program], **further}


def test_the_question_is_read_on_stdin_and_stdout_is_the_answer_to_the_last_byte(ask: Ask) -> None:
    assert ask({"type": "shell", "command": ["cat"]}, "Wer? ümläut $HOME `x`\n").text == "Wer? ümläut $HOME `x`\n"


def test_json_on_stdout_is_taken_apart(ask: Ask) -> None:
    program = 'print(\'{"a": "yes", "in": 1000, "p": ["one"]}\')'
    response = {"answer": "/a", "input_tokens": "/in", "passages": {"list": "/p"}}
    answer = ask(target(program, response=response, prices={"input_usd_per_million_tokens": 5.0}))
    assert (answer.text, answer.passages, answer.cost_usd) == ("yes", (Passage(text="one"),), 0.005)


def test_a_command_runs_in_the_folder_of_the_suite_and_need_not_read_its_question(ask: Ask, tmp_path: Path) -> None:
    assert Path(ask(target("import os; print(os.getcwd(), end='')"), "x" * 1_000_000).text or "") == tmp_path


@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        ("import sys; sys.exit('out of memory')", "exit", "exit code 1: out of memory"),
        ("import os; os.kill(os.getpid(), 9)", "exit", "exit code -9"),
        ("print('no json')", "bad_response", "is not JSON. It begins: no json"),
        ("print('{}')", "bad_response", "has nothing at '/a'"),
        ("import time; time.sleep(60)", "timeout", "did not end within 1 s"),
    ],
)
def test_each_failure_reads_differently(ask: Ask, program: str, kind: str, words: str) -> None:
    with pytest.raises(CallError) as caught:
        ask(target(program, response={"answer": "/a"}, timeout_seconds=1.0))
    assert caught.value.kind == kind
    assert words in str(caught.value)


def test_a_command_that_is_not_there_is_told_by_its_name(ask: Ask) -> None:
    with pytest.raises(CallError, match="'no-such-command' cannot be started") as caught:
        ask({"type": "shell", "command": ["no-such-command"]})
    assert caught.value.kind == "not_started"


def test_what_a_command_has_started_ends_with_it(ask: Ask, tmp_path: Path) -> None:
    note = tmp_path / "child"
    child = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    program = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-S', '-c', {child!r}]); time.sleep(60)"
    with pytest.raises(CallError):
        ask(target(program, timeout_seconds=1.0))
    deadline = time.monotonic() + 10
    while _runs(int(note.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_secret_of_the_environment_stands_in_no_error_and_no_answer(ask: Ask, monkeypatch) -> None:
    monkeypatch.setenv("RAG_TEST_TOKEN", "correct-horse-battery")
    echo = "import os, sys; print(os.environ['RAG_TEST_TOKEN'], file=sys.{stream}); sys.exit({code})"
    with pytest.raises(CallError) as caught:
        ask(target(echo.format(stream="stderr", code=1)))
    assert "horse" not in str(caught.value)
    assert ask(target(echo.format(stream="stdout", code=0))).text == "[redacted]\n"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
