"""The `shell` target: a command per question, which reads it on stdin and writes the answer on stdout.

Its answers are journalled but never recorded: what a command does depends on this machine, and no key could tell.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

from rag_eval_assets.progress import Reporter
from rag_eval_assets.recording.calls import CallError
from rag_eval_assets.recording.secrets import Redactor
from rag_eval_assets.recording.transport import excerpt
from rag_eval_assets.suite.targets import ShellTarget
from rag_eval_assets.targets.base import Answer
from rag_eval_assets.targets.pointers import ShapeError, priced, read_answer

MAX_OUTPUT_BYTES = 32 * 2**20

_SECRET_VARIABLE = re.compile(r"(?i)(key|token|secret|passw|credential)")


class ShellPipeline:
    """A command as `config` describes it.

    Args:
        config: the target in the suite.
        folder: where the command runs.
    """

    def __init__(self, config: ShellTarget, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._redactor = Redactor()
        # The suite does not say which variables the command uses, so what is named like a secret counts as one.
        for name, value in os.environ.items():
            if _SECRET_VARIABLE.search(name) and len(value.strip()) >= 8:
                self._redactor.learn(value.strip())

    def identity(self) -> dict[str, Any]:
        """Command and pointers."""
        return self._config.settings()

    async def prepare(self, reporter: Reporter) -> None:
        """Nothing."""
        del reporter

    async def answer(self, question: str, trial: int) -> Answer:
        """Run the command once; raises CallError."""
        del trial
        config = self._config
        output = self._redactor.answer(_decoded(await self._run(question.encode("utf-8", "surrogatepass"))))
        if config.response is None:
            return Answer(output)
        try:
            answer = read_answer(self._redactor.answer(json.loads(output)), config.response)
        except (ValueError, RecursionError):
            raise self._bad("is not JSON", output) from None
        except ShapeError as error:
            raise self._bad(str(error), output) from None
        return dataclasses.replace(answer, cost_usd=priced(answer, config.prices))

    async def close(self) -> None:
        """Nothing to release: every command has ended."""

    async def _run(self, question: bytes) -> bytes:
        name, seconds = self._config.command[0], self._config.timeout_seconds
        try:
            # A session of its own makes a process group, so that what the command starts ends with it.
            process = await asyncio.create_subprocess_exec(
                *self._config.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise CallError("not_started", f"command {name!r} cannot be started ({error.strerror})") from None
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(seconds):
                writing = _write(process.stdin, question)
                output, errors, _ = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr), writing)
                code = await process.wait()
        except TimeoutError:
            raise CallError("timeout", f"command {name!r} did not end within {seconds:g} s and was stopped") from None
        except _TooLargeError:
            raise CallError("too_large", f"command {name!r} wrote more than {MAX_OUTPUT_BYTES} bytes") from None
        finally:
            _end_group(process.pid)
            await process.wait()
        if code != 0:
            said = excerpt(self._redactor.error_text(errors.decode("utf-8", "replace")).encode("utf-8", "replace"))
            raise CallError("exit", f"command {name!r} ended with exit code {code}" + (f": {said}" if said else ""))
        return output

    def _bad(self, problem: str, output: str) -> CallError:
        shown = excerpt(self._redactor.error_text(output).encode("utf-8", "surrogatepass"))
        return CallError("bad_response", f"what {self._config.command[0]!r} wrote {problem}. It begins: {shown}")


class _TooLargeError(Exception):
    pass


async def _write(stream: asyncio.StreamWriter, question: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a command need not read its question
        stream.write(question)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(2**16):
        size += len(part)
        if size > MAX_OUTPUT_BYTES:
            raise _TooLargeError
        parts.append(part)
    return b"".join(parts)


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _decoded(output: bytes) -> str:
    """UTF-8; other bytes become lone surrogates, which the stage then finds, marks and replaces."""
    return output.decode("utf-8", "surrogateescape")
