"""Hashes of files: always those of the bytes that are there, and read once where nothing changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights import hashes
from rag_eval_assets.weights.hashes import file_sha256, read_sha256
from rag_eval_assets.weights.registry import ModelPin
from rag_eval_assets.weights.resolve import ResolvedModel, verify

CONTENT = bytes(range(256)) * 8192


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("RAG_EVAL_HOME", str(home))
    return home


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A large file that has lain there for a while, in a process that has read nothing."""
    monkeypatch.setattr(hashes, "_read", {})
    monkeypatch.setattr(hashes, "_SETTLED_SECONDS", -1)
    path = tmp_path / "weights"
    path.write_bytes(CONTENT)
    return path


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "_read", {})


def never(path: Path) -> str:
    raise AssertionError(f"{path.name} was read")


def test_an_unchanged_file_is_read_once(home: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_sha256(file) == sha(CONTENT)
    in_a_new_process(monkeypatch)
    monkeypatch.setattr(hashes, "read_sha256", never)
    assert file_sha256(file) == sha(CONTENT)


@pytest.mark.parametrize("keep_times", [False, True])
def test_a_changed_file_is_read_again(home: Path, file: Path, keep_times: bool) -> None:
    before = file.stat()
    assert file_sha256(file) == sha(CONTENT)
    time.sleep(0.01)  # a tick of the file system's clock
    file.write_bytes(CONTENT[::-1])
    if keep_times:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_sha256(file) == sha(CONTENT[::-1])


def test_a_file_that_was_just_written_is_not_remembered(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "_SETTLED_SECONDS", 60)
    assert file_sha256(file) == sha(CONTENT)
    assert not (home / "cache").exists()


def test_without_a_home_nothing_is_written(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_EVAL_HOME", str(tmp_path / "none"))
    assert file_sha256(file) == sha(CONTENT)
    assert not (tmp_path / "none").exists()


def test_damage_to_what_is_remembered_is_not_trusted(home: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_sha256(file)
    memo = home / "cache" / "hashes.sqlite"
    memo.write_bytes(memo.read_bytes().replace(bytes.fromhex(sha(CONTENT)), bytes(32)))
    in_a_new_process(monkeypatch)
    assert file_sha256(file) == sha(CONTENT)


def test_loading_reads_the_bytes_whatever_is_remembered(
    home: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = file.rename(tmp_path / "model.safetensors")
    pin = ModelPin("m", "o/m", "0" * 40, sha(CONTENT), None, 1, 512, None)
    model = ResolvedModel(pin, tmp_path, "folder")
    verify(model)
    monkeypatch.setattr(hashes, "file_sha256", never)
    in_a_new_process(monkeypatch)
    weights.write_bytes(CONTENT[::-1])
    with pytest.raises(ConfigurationError, match=f"has SHA-256 {sha(CONTENT[::-1])}"):
        verify(model)
    assert read_sha256(weights) == sha(CONTENT[::-1])


def test_hashing_imports_no_numpy() -> None:
    code = "import sys, rag_eval_assets.weights.hashes; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
