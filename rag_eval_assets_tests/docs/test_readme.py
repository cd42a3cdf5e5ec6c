"""README.md says what there is: packages, variables, commands. What it shows is run in `test_pages`."""

from __future__ import annotations

import re
from pathlib import Path

from rag_eval_assets.cli.app import app
from rag_eval_assets.orchestration.compute import EXECUTORS
from rag_eval_assets.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_layout_names_every_package(docs) -> None:
    (layout,) = [block.content for block in docs.PAGES[0].blocks if block.content.startswith("rag_eval_assets/")]
    named = set(re.findall(r"(?m)^  (\w+)/ ", layout))
    packages = {path.parent.name for path in (ROOT / "rag_eval_assets").glob("*/__init__.py")}
    assert named == packages
    for path in re.findall(r"(?m)^(\w+)/", layout):
        assert (ROOT / path).is_dir()


def test_the_tables_of_variables_name_every_variable_that_is_read() -> None:
    tables = README + (ROOT / "docs" / "s3.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?m)^\| `([A-Z0-9_]+)` \|", tables))
    sources = "".join(path.read_text() for path in (ROOT / "rag_eval_assets").rglob("*.py"))
    read = set(re.findall(r"\bRAG_EVAL_[A-Z0-9_]+", sources))
    read |= {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    assert named == read | {"DAGSTER_HOME", "HF_HUB_OFFLINE"}
    assert all(f"`{name}`" in README for name in EXECUTORS if name != "k8s")


def test_every_command_of_the_command_line_is_mentioned() -> None:
    for command in app.registered_commands:
        name = command.callback.__name__ if command.callback else ""
        assert f"rag-eval {name}" in README, name
