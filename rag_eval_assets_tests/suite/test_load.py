"""Finding suites: packaged ones by name, files by path, whole folders through RAG_EVAL_SUITES; and their identity."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import bundled_suites, load_suite, load_suites, read_suite

Write = Callable[..., Path]


def test_the_packaged_suites_load_by_name() -> None:
    assert set(bundled_suites()) == {"embedded", "live-http", "planted-faults", "rag-dataset-12000"}
    assert [load_suite(name).slug for name in bundled_suites()] == [
        "embedded",
        "live_http",
        "planted_faults",
        "rag_dataset_12000",
    ]


def test_the_default_suite_needs_no_network_and_no_other_model() -> None:
    suite = load_suite("embedded").suite
    assert [data_set.model_dump(exclude_none=True)["sample"] for data_set in suite.datasets] == ["builtin"]
    assert {scorer.model for scorer in suite.scorers} | {target.model for target in suite.targets.values()} == {
        "all-MiniLM-L6-v2"
    }


def test_the_production_suite_scores_with_bert_base_uncased_and_resolves_its_revision_once() -> None:
    suite = load_suite("rag-dataset-12000").suite
    assert {scorer.name: scorer.model for scorer in suite.scorers}["bertscore"] == "bert-base-uncased"
    assert suite.datasets[0].model_dump()["revision"] == "unverified"


def test_a_suite_is_loaded_by_path_and_named_after_its_file(write_suite: Write) -> None:
    loaded = load_suite(str(write_suite("My first.yaml")))
    assert (loaded.name, loaded.slug) == ("My first", "my_first")


def test_a_missing_suite_is_named_with_the_nearest_packaged_one() -> None:
    with pytest.raises(ConfigurationError, match=r"'embeded' is neither a file .* Did you mean 'embedded'\?"):
        load_suite("embeded")
    with pytest.raises(
        ConfigurationError, match=r"'zzz' is neither a file .* Packaged suites: embedded, live-http, planted-faults"
    ):
        load_suite("zzz")


def test_a_name_that_lacks_its_ending_is_answered_with_the_file(
    write_suite: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite("garden.yaml")
    monkeypatch.chdir(tmp_path)
    for given in ("garden", str(tmp_path / "garden")):
        with pytest.raises(ConfigurationError, match=rf"Did you mean '{given}\.yaml'\?"):
            load_suite(given)


def test_a_data_file_in_place_of_a_suite_is_answered_with_the_command_that_makes_one(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("question,answer\n")
    with pytest.raises(
        ConfigurationError, match=rf"is a data file and no suite. Make one over it: rag-eval init {rows}"
    ):
        load_suite(str(rows))


@pytest.mark.parametrize("place", ["~no-such-user-here/s.yaml", "s" * 5000 + ".yaml"])
def test_a_place_that_cannot_even_be_looked_at_is_a_configuration_error(place: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_suite(place)


def test_paths_in_a_suite_start_at_its_folder(write_suite: Write, tmp_path: Path) -> None:
    loaded = read_suite(write_suite(models="{all-MiniLM-L6-v2: {folder: ../weights}}"))
    assert loaded.model_folder("all-MiniLM-L6-v2") == tmp_path.parent / "weights"
    assert loaded.model_folder("bert-base-uncased") is None
    assert loaded.resolve("/data/x.csv") == Path("/data/x.csv")
    with pytest.raises(ConfigurationError, match="path '~no-such-user-here/x' is not usable"):
        loaded.resolve("~no-such-user-here/x")


def test_the_hash_does_not_see_comments_order_or_spelled_out_defaults(write_suite: Write) -> None:
    plain = read_suite(write_suite("s.yaml")).sha256
    assert plain == read_suite(write_suite("s.yaml", retrieval="{k: 5}  # the default")).sha256
    path = write_suite("s.yaml")
    path.write_text("# a comment\n" + "".join(reversed(path.read_text().splitlines(keepends=True))))
    assert plain == read_suite(path).sha256


@pytest.mark.parametrize(
    "change",
    [
        {"retrieval": "{k: 6}"},
        {"scorers": "[{type: bertscore}]"},
        {"targets": "{pipeline: {type: embedded, top_k: 6}}"},
        {"targets": "{other: {type: embedded}}"},
        {"run": "{start_date: 2026-02-01}"},
        {"datasets": "[{sample: builtin, columns: {id: null}}]"},
    ],
)
def test_the_hash_sees_every_value(write_suite: Write, change: dict[str, str]) -> None:
    assert read_suite(write_suite(**change)).sha256 != read_suite(write_suite()).sha256


def test_a_date_may_be_quoted(write_suite: Write) -> None:
    plain, quoted = (read_suite(write_suite(run=f"{{start_date: {day}}}")) for day in ("2026-02-01", "'2026-02-01'"))
    assert plain.sha256 == quoted.sha256


def test_without_a_setting_the_default_suite_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_EVAL_SUITES", raising=False)
    assert [suite.slug for suite in load_suites()] == ["embedded"]
    monkeypatch.setenv("RAG_EVAL_SUITES", " ")
    assert [suite.slug for suite in load_suites()] == ["embedded"]


def test_files_folders_and_names_can_be_mixed(
    write_suite: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "notes.txt").write_text("no suite")
    write_suite("more/b.yaml")
    write_suite("more/a.yml")
    single = write_suite("single.yaml")
    monkeypatch.setenv("RAG_EVAL_SUITES", os.pathsep.join([str(single), str(tmp_path / "more"), "embedded"]))
    assert [suite.slug for suite in load_suites()] == ["single", "a", "b", "embedded"]


def test_a_folder_without_suites_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"holds no \.yaml file"):
        load_suites(str(tmp_path))


def test_one_broken_suite_of_a_folder_is_named(write_suite: Write, tmp_path: Path) -> None:
    write_suite("good.yaml")
    broken = write_suite("broken.yaml", run="{concurrency: 0}")
    with pytest.raises(ConfigurationError) as caught:
        load_suites(str(tmp_path))
    assert str(caught.value).startswith(f"{broken}: run.concurrency")
