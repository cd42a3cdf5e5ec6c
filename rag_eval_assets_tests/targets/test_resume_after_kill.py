"""A run that is killed without warning loses no answer that had arrived, and asks next to nothing twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUESTIONS, CONCURRENCY = 120, 4

RUN = """
import asyncio, json, sys
from pathlib import Path

import pyarrow as pa
from rag_eval_assets.progress import SILENT
from rag_eval_assets.recording.journal import Journal
from rag_eval_assets.tables import EVAL_EXAMPLES
from rag_eval_assets.targets.base import Answer
from rag_eval_assets.targets.stage import StageOptions, generate_answers

folder, questions, concurrency = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


class SlowTarget:
    def identity(self):
        return {"type": "slow"}

    async def prepare(self, reporter):
        self.bill = (folder / "asked.txt").open("a", buffering=1)

    async def answer(self, question, trial):
        self.bill.write(question + "\\n")
        await asyncio.sleep(0.02)
        return Answer(f"answer to {question}")

    async def close(self):
        self.bill.close()


rows = [
    {"example_id": f"e{n}", "question": f"q{n}", "source": "s", "source_row": n, "row_sha256": ""}
    for n in range(questions)
]
with Journal(folder / "journal.jsonl") as journal:
    examples = pa.Table.from_pylist(rows, schema=EVAL_EXAMPLES.schema)
    made = generate_answers(examples, SlowTarget(), journal, StageOptions(concurrency=concurrency), SILENT)
print(json.dumps([made.answers.column("answer").to_pylist(), made.call_log.column("origin").to_pylist()]))
"""


def asked(folder: Path) -> list[str]:
    bill = folder / "asked.txt"
    return bill.read_text().split() if bill.exists() else []


def test_after_a_kill_at_most_the_calls_in_flight_are_paid_for_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path), str(QUESTIONS), str(CONCURRENCY)]
    kills = 0
    for enough in (20, 60):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as running:
            deadline = time.monotonic() + 60
            while len(set(asked(tmp_path))) < enough and time.monotonic() < deadline:
                time.sleep(0.005)
            running.kill()
        kills += running.returncode == -signal.SIGKILL
    assert kills == 2
    before = len(set(asked(tmp_path)))
    assert 60 <= before < QUESTIONS

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    answers, origins = json.loads(done.stdout)
    assert answers == [f"answer to q{number}" for number in range(QUESTIONS)]
    assert origins.count("journal") >= before - CONCURRENCY
    times = Counter(asked(tmp_path))
    assert set(times) == {f"q{number}" for number in range(QUESTIONS)}
    assert times.total() - QUESTIONS <= kills * CONCURRENCY
