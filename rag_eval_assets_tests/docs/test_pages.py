"""README.md and docs/: commands end well, snippets work, pasted output is what is printed, links lead on."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import dagster as dg
import pytest
import yaml

from rag_eval_assets.orchestration.resources import EvaluationResource
from rag_eval_assets.suite.load import read_suite
from rag_eval_assets.suite.models import Suite

ROOT = Path(__file__).parents[2]
LANGUAGES = {"sh", "yaml", "python", "sql", "text", "json"}


def test_no_page_is_left_out(docs) -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert found | {"README.md"} == {page.name for page in docs.PAGES}


def test_every_block_says_a_language_that_is_checked(page) -> None:
    assert {block.language for block in page.blocks} <= LANGUAGES


def test_only_what_cannot_be_run_is_left_out(docs) -> None:
    shell = [block for page in docs.PAGES for block in page.blocks if block.language == "sh"]
    lines = {line.split(" #")[0].strip() for block in shell for line in block.content.splitlines()}
    assert set(docs.NOT_RUN) <= lines


def test_a_command_ends_well(command, ran, docs) -> None:
    if not command.commands:
        pytest.skip("; ".join(f"{name}: {why}" for name, why in docs.NOT_RUN.items() if name in command.content))
    output = ran.outputs[command]
    assert output.code == 0, output.stderr
    assert "Traceback" not in output.stderr


def test_a_quiet_run_shows_neither_progress_nor_summary(ran) -> None:
    quiet = [block for block in ran.outputs if all(line.endswith("--quiet") for line in block.commands)]
    assert quiet
    assert [(ran.outputs[block].stdout, ran.outputs[block].stderr) for block in quiet] == [("", "")] * len(quiet)


def test_a_python_snippet_prints_something(snippet, ran) -> None:
    output = ran.outputs[snippet]
    assert output.code == 0, output.stderr
    assert output.stdout.strip() != ""


def test_a_query_gives_rows(query, ran) -> None:
    output = ran.outputs[query]
    assert output.code == 0, output.stderr
    assert output.rows > 0


def test_json_is_valid(data) -> None:
    assert json.loads(data.content)


def test_the_history_holds_what_every_entry_point_wrote(ran) -> None:
    """The command line evaluated today; `dagster`, `dg` and a repetition 2026-01-02; the sample left nothing."""
    history = ran.folder / ".rag-eval" / "tables"
    dates = {
        path.parent.name: len(list(path.parent.iterdir())) for path in history.glob("embedded/*/score_history/*/*")
    }
    assert dates.pop("run_date=2026-01-02") == 3
    assert list(dates.values()) == [1]
    assert list(history.glob("my/*/score_history/*/*"))
    assert not list(history.glob("*~sample/*/score_history"))


def test_yaml_is_a_suite_or_a_part_of_one_or_the_configuration_of_a_run(settings, ran, tmp_path: Path) -> None:
    content = yaml.safe_load(settings.content)
    if set(content) <= set(Suite.model_fields):
        base = {} if settings.name else yaml.safe_load((ran.folder / "my.yaml").read_text())
        path = tmp_path / "part.yaml"
        path.write_text(yaml.safe_dump({**base, **content}))
        read_suite(path)
    else:
        assert list(content) == ["resources"], "neither a part of a suite nor the configuration of a run"
        schema = dg.Definitions(resources={"evaluation": EvaluationResource()}, assets=[_uses_the_resource])
        job = schema.resolve_implicit_global_asset_job_def()
        assert dg.validate_run_config(job, content)["resources"]["evaluation"]["config"]


@dg.asset
def _uses_the_resource(evaluation: EvaluationResource) -> None:
    del evaluation


def test_pasted_output_is_what_is_printed(pasted, ran, docs, request: pytest.FixtureRequest) -> None:
    block, output = pasted
    printed = ran.outputs[block].stdout
    words, numbers = without_run(output.content)
    found_words, found_numbers = without_run(printed)
    if request.config.getoption("--paste", default=False) and found_words != words:
        docs.paste(output, printed)
        pytest.skip("written into the page")
    assert found_words == words
    # Another processor may round the fourth decimal the other way.
    assert all(math.isclose(a, b, abs_tol=2e-4) for a, b in zip(numbers, found_numbers, strict=True))


def without_run(text: str) -> tuple[str, list[float]]:
    """Text without what differs between runs (ids, dates, folders, hashes), and apart from it its decimal numbers."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"\d{4}([-/])\d{2}\1\d{2}", "<date>", text)
    text = re.sub(r"content [0-9a-f]{12}", "content <hash>", text)
    text = re.sub(r"\b[0-9a-f]{16,64}\b", "<hash>", text)
    text = re.sub(r"(report: |page:   ).*?/\.rag-eval", r"\1.rag-eval", text)
    lines = [re.sub(r" +$", "", line) for line in text.rstrip("\n").splitlines()]
    decimal = r"-?\d+\.\d{2,}"
    joined = "\n".join(lines)
    return re.sub(decimal, "<number>", joined), [float(number) for number in re.findall(decimal, joined)]


def test_links_lead_to_files_and_headings_of_the_repository(page) -> None:
    broken: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.text):
        if "://" in link:
            continue
        name, _, heading = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.exists() or (heading and heading not in headings(target)):
            broken.append(link)
    assert broken == []


def headings(path: Path) -> set[str]:
    """The anchors of a page: its headings in lower case, punctuation left out, with hyphens for spaces."""
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_linked_from_the_first_one_or_its_folder(docs) -> None:
    entries = ("README.md", "docs/README.md", "docs/adr/README.md")
    linked = {"README.md"}
    for entry in entries:
        for link in re.findall(r"\]\(([^)#\s]+)\)", (ROOT / entry).read_text()):
            if "://" not in link:
                linked.add(((ROOT / entry).parent / link).resolve().relative_to(ROOT).as_posix())
    assert {page.name for page in docs.PAGES} <= linked


def test_a_decision_says_why_what_and_what_follows(page) -> None:
    if not re.search(r"/adr/\d{4}-", page.name):
        pytest.skip("no decision")
    number = re.search(r"/(\d{4})-", page.name)
    assert number is not None
    assert page.text.startswith(f"# {int(number[1])}. ")
    assert re.findall(r"(?m)^## (.*)$", page.text) == ["Context", "Decision", "Consequences"]
