"""The version of a corpus on the disk: equal for equal content, another for any change, an error if unreadable."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.automation.fingerprint import fingerprint, watched
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.suite.load import LoadedSuite

MakeSuite = Callable[..., LoadedSuite]


class TestFolder:
    @pytest.fixture
    def docs(self, tmp_path: Path) -> Path:
        folder = tmp_path / "docs"
        (folder / "deep").mkdir(parents=True)
        (folder / "a.txt").write_text("the mill")
        (folder / "deep" / "b.txt").write_text("the bees")
        return folder

    def test_the_same_content_elsewhere_and_later_has_the_same_version(self, docs: Path, suite: MakeSuite) -> None:
        before = fingerprint(suite())
        copied = docs.with_name("copied")
        shutil.copytree(docs, copied)
        os.utime(copied / "a.txt", (1, 1))
        assert fingerprint(suite(corpus_sensor={"watch": {"folder": "copied"}})) == before

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda docs: (docs / "a.txt").write_text("the MILL"), id="content of the same length"),
            pytest.param(lambda docs: (docs / "c.txt").write_text(""), id="new empty file"),
            pytest.param(lambda docs: (docs / "deep" / "b.txt").unlink(), id="deleted"),
            pytest.param(lambda docs: (docs / "a.txt").rename(docs / "z.txt"), id="renamed"),
            pytest.param(lambda docs: (docs / "a.txt").rename(docs / "deep" / "a.txt"), id="moved"),
        ],
    )
    def test_any_change_gives_another_version(
        self, docs: Path, suite: MakeSuite, change: Callable[[Path], object]
    ) -> None:
        before = fingerprint(suite())
        change(docs)
        assert fingerprint(suite()) != before

    def test_a_file_written_twice_at_one_time_stamp_is_seen(self, docs: Path, suite: MakeSuite) -> None:
        """Time stamps are coarse: what was just written may be written again without a new one."""
        status = (docs / "a.txt").stat()
        before = fingerprint(suite())
        (docs / "a.txt").write_text("the MILL")
        os.utime(docs / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert fingerprint(suite()) != before

    def test_a_file_with_an_old_time_stamp_is_not_read_again(self, docs: Path, suite: MakeSuite) -> None:
        old = (time.time() - 60,) * 2
        os.utime(docs / "a.txt", old)
        before = fingerprint(suite())
        (docs / "a.txt").write_text("the MILL")
        os.utime(docs / "a.txt", old)
        assert fingerprint(suite()) == before, "told from the time stamp alone"
        os.utime(docs / "a.txt", (1, 1))
        assert fingerprint(suite()) != before

    def test_names_that_are_no_text_are_names_too(self, docs: Path, suite: MakeSuite) -> None:
        before = fingerprint(suite())
        Path(os.fsdecode(os.fsencode(docs) + b"/\xff\n.txt")).write_text("x")
        assert fingerprint(suite()) != before

    def test_links_to_folders_are_followed_and_circles_end(self, docs: Path, suite: MakeSuite, tmp_path: Path) -> None:
        (docs / "again").symlink_to(docs)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (docs / "current").symlink_to(elsewhere)
        before = fingerprint(suite())
        (elsewhere / "new.txt").write_text("x")
        assert fingerprint(suite()) != before

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            pytest.param(shutil.rmtree, "'docs' cannot be read", id="deleted"),
            pytest.param(lambda docs: [shutil.rmtree(docs), docs.mkdir()], "'docs' holds no file", id="not mounted"),
            pytest.param(lambda docs: (docs / "x").symlink_to("nowhere"), "'docs' cannot be read", id="dangling link"),
        ],
    )
    def test_what_cannot_be_read_is_an_error_and_never_empty(
        self, docs: Path, suite: MakeSuite, spoil: Callable[[Path], object], says: str
    ) -> None:
        spoil(docs)
        with pytest.raises(InfrastructureError, match=says):
            fingerprint(suite())


class TestWhatIsWatched:
    def test_by_default_the_file_that_the_corpus_is_read_from(self, suite: MakeSuite) -> None:
        made = suite(corpus={"source": "file", "file": "documents.jsonl"}, corpus_sensor={})
        assert [watch.file for watch in watched(made)] == ["documents.jsonl"]

    def test_for_contexts_the_data_sets_that_can_change(self, suite: MakeSuite) -> None:
        hub = {"huggingface": "a/b", "split": "test"}
        made = suite(
            corpus={"source": "contexts"},
            datasets=[{"file": "rows.csv"}, {**hub, "revision": "main"}, {**hub, "revision": "0" * 40}, hub],
            corpus_sensor={},
        )
        found = [(watch.file, watch.huggingface, watch.revision) for watch in watched(made)]
        assert found == [("rows.csv", None, None), (None, "a/b", "main")]

    def test_a_corpus_that_cannot_change_is_refused(self, suite: MakeSuite) -> None:
        with pytest.raises(ConfigurationError, match="has nothing to look at"):
            watched(suite(corpus_sensor={}))

    def test_each_of_several_files_counts(self, suite: MakeSuite, tmp_path: Path) -> None:
        made = suite(corpus={"source": "contexts"}, datasets=[{"file": "a.csv"}, {"file": "b.csv"}], corpus_sensor={})
        (tmp_path / "a.csv").write_text("1")
        with pytest.raises(InfrastructureError, match=r"'b\.csv' cannot be read"):
            fingerprint(made)
        (tmp_path / "b.csv").write_text("1")
        before = fingerprint(made)
        (tmp_path / "b.csv").write_text("2")
        assert fingerprint(made) != before
