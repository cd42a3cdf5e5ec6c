"""Reference tables say what the code says: the suite's keys are generated, the models' pins are compared."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from rag_eval_assets.scoring.registry import DEFAULT_MODELS
from rag_eval_assets.status import AnswerStatus, MatchStatus, ScoreStatus
from rag_eval_assets.suite.load import bundled_suites
from rag_eval_assets.weights.registry import REGISTRY

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """docs/reference.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("docs_reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_of_the_suite_is_the_one_of_the_schema(generator: ModuleType) -> None:
    text = (DOCS / "suites.md").read_text(encoding="utf-8")
    committed = text.split(generator.BEGIN)[1].split(generator.END)[0]
    assert committed.strip() == generator.reference(), "run: python docs/reference.py"


def test_writing_the_reference_again_changes_nothing_else(generator: ModuleType, tmp_path: Path, monkeypatch) -> None:
    page = tmp_path / "suites.md"
    page.write_text(f"above\n{generator.BEGIN}\nan outdated table\n{generator.END}\nbelow\n")
    monkeypatch.setattr(generator, "PAGE", page)
    generator.write()
    first = page.read_text()
    assert first.startswith("above\n")
    assert first.endswith("\nbelow\n")
    assert "an outdated table" not in first
    generator.write()
    assert page.read_text() == first


def test_the_page_about_models_names_every_pin() -> None:
    table = re.findall(r"(?m)^\| `([^`]+)` \| (\S+) \| `(\w+)` \| `(\w+)` \| (\d+) \| (\d+) \|$", _page("models.md"))
    assert {tuple(row) for row in table} == {
        (
            model.id,
            model.repo_id,
            model.revision,
            model.weights_sha256,
            str(model.bertscore_layer),
            str(model.max_seq_length),
        )
        for model in REGISTRY.values()
    }
    assert set(DEFAULT_MODELS.values()) <= set(REGISTRY)


@pytest.mark.parametrize("statuses", [AnswerStatus, MatchStatus, ScoreStatus], ids=lambda kind: kind.__name__)
def test_the_page_about_the_report_explains_every_status(statuses) -> None:
    page = _page("report.md")
    unmentioned = [str(status) for status in statuses if f"`{status}`" not in page]
    assert [status for status in unmentioned if status != MatchStatus.JUDGED] == []


def test_the_page_about_suites_names_every_bundled_one() -> None:
    assert set(re.findall(r"(?m)^\| `([\w-]+)` \| [^|]* \| [^|]* \|$", _page("suites.md"))) >= set(bundled_suites())


def _page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")
