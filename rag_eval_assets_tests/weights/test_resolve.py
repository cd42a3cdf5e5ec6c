"""Where a model is looked for, in which order, and that nothing unproven is ever used. No test opens a connection."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import huggingface_hub.constants
import pytest

from rag_eval_assets.errors import ConfigurationError, UnavailableError
from rag_eval_assets.weights.hashes import file_sha256
from rag_eval_assets.weights.registry import REGISTRY, ModelPin
from rag_eval_assets.weights.resolve import resolve

ROOT = Path(__file__).parents[2]
WEIGHTS = b"eight bytes of header and some numbers"
PACKAGE = "weights_of_tiny"
TINY = ModelPin(
    id="tiny",
    repo_id="somebody/tiny",
    revision="0123456789abcdef0123456789abcdef01234567",
    weights_sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    weights_bytes=len(WEIGHTS),
    bertscore_layer=1,
    max_seq_length=16,
    package=PACKAGE,
    former_repo_id="tiny-of-old",
)


def write_model(folder: Path, weights: bytes = WEIGHTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*TINY.files, "vocab.txt"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def write_cached(cache: Path, repo_id: str, weights: bytes = WEIGHTS) -> Path:
    """A model in the layout of the hub's cache: blobs by hash, and a snapshot of links to them."""
    repository = cache / f"models--{repo_id.replace('/', '--')}"
    snapshot = repository / "snapshots" / TINY.revision
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(TINY.revision)
    write_model(snapshot, weights)
    for file in sorted(snapshot.iterdir()):
        blob = repository / "blobs" / hashlib.sha256(file.name.encode()).hexdigest()
        file.rename(blob)
        file.symlink_to(blob)
    return snapshot


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, the model `tiny` in the registry, the hub offline, and no models folder set."""
    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setitem(REGISTRY, "tiny", TINY)
    monkeypatch.delenv("RAG_EVAL_MODELS_DIR", raising=False)
    return folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed weights package that must not be imported."""
    folder = tmp_path / "site" / PACKAGE
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder.parent))
    return write_model(folder / "model")


def test_a_given_folder_comes_first(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cached(cache, TINY.repo_id)
    write_model(tmp_path / "models" / "tiny")
    monkeypatch.setenv("RAG_EVAL_MODELS_DIR", str(tmp_path / "models"))
    given = write_model(tmp_path / "given")
    found = resolve("tiny", folder=given)
    assert (found.source, found.path) == ("folder", given)


def test_the_models_folder_of_the_environment_comes_before_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cached(cache, TINY.repo_id)
    monkeypatch.setenv("RAG_EVAL_MODELS_DIR", str(tmp_path / "models"))
    assert resolve("tiny").source == "hub-cache"
    folder = write_model(tmp_path / "models" / "tiny")
    found = resolve("tiny")
    assert (found.source, found.path) == ("folder", folder)


def test_the_cache_comes_before_the_package(cache: Path, package: Path) -> None:
    found = resolve("tiny")
    assert (found.source, found.path) == ("package", package)
    snapshot = write_cached(cache, TINY.repo_id)
    found = resolve("tiny")
    assert (found.source, found.path) == ("hub-cache", snapshot)


def test_a_cache_under_the_former_name_counts(cache: Path) -> None:
    snapshot = write_cached(cache, "tiny-of-old")
    assert resolve("tiny", allow_download=False).path == snapshot


def test_another_revision_in_the_cache_does_not_count(cache: Path) -> None:
    write_cached(cache, TINY.repo_id)
    snapshots = cache / "models--somebody--tiny" / "snapshots"
    (snapshots / TINY.revision).rename(snapshots / ("f" * 40))
    with pytest.raises(ConfigurationError, match="not on this machine"):
        resolve("tiny", allow_download=False)


def test_an_incomplete_cache_is_passed_over_and_named_where_nothing_else_is_found(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (write_cached(cache, TINY.repo_id) / "config.json").unlink()
    with pytest.raises(ConfigurationError, match=r"the hub cache lacks config\.json"):
        resolve("tiny", allow_download=False)
    (tmp_path / "site" / PACKAGE).mkdir(parents=True)
    write_model(tmp_path / "site" / PACKAGE / "model")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert resolve("tiny", allow_download=False).source == "package"


def test_the_weights_package_is_found_without_importing_it(cache: Path, package: Path) -> None:
    assert resolve("tiny").path == package
    assert PACKAGE not in sys.modules


def test_an_explicit_folder_with_other_weights_is_an_error_although_the_cache_has_the_right_ones(
    cache: Path, tmp_path: Path
) -> None:
    write_cached(cache, TINY.repo_id)
    folder = write_model(tmp_path / "given", weights=b"something else")
    with pytest.raises(ConfigurationError) as error:
        resolve("tiny", folder=folder)
    message = str(error.value)
    assert hashlib.sha256(b"something else").hexdigest() in message
    assert TINY.weights_sha256 in message
    assert TINY.revision in message


def test_damaged_weights_in_the_cache_are_an_error(cache: Path, package: Path) -> None:
    write_cached(cache, TINY.repo_id, weights=b"cut off")
    with pytest.raises(ConfigurationError, match="expected " + TINY.weights_sha256):
        resolve("tiny")


def test_a_folder_that_does_not_exist_is_an_error(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        resolve("tiny", folder=tmp_path / "nowhere")


def test_pickled_weights_are_refused(cache: Path, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "given")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigurationError, match=r"lacks model\.safetensors \(pickled weights are never read\)"):
        resolve("tiny", folder=folder)


def test_a_folder_without_any_tokenizer_is_refused(cache: Path, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "given")
    (folder / "vocab.txt").unlink()
    with pytest.raises(ConfigurationError, match=r"lacks tokenizer\.json or vocab\.txt"):
        resolve("tiny", folder=folder)


def test_a_missing_model_names_revision_and_every_way_to_get_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError) as error:
        resolve("tiny", allow_download=False)
    message = str(error.value)
    assert "\n" not in message
    for part in (
        "'tiny'",
        TINY.revision,
        "rag-eval-assets[offline]",
        "RAG_EVAL_MODELS_DIR",
        "models.tiny.folder",
        "HF_HUB_OFFLINE unset",
    ):
        assert part in message
    monkeypatch.setitem(REGISTRY, "tiny", replace(TINY, package=None))
    with pytest.raises(ConfigurationError) as error:
        resolve("tiny", allow_download=False)
    assert "offline]" not in str(error.value)
    assert str(error.value).endswith(". No package holds its weights")


def test_a_hub_that_may_not_be_asked_is_not_asked(cache: Path) -> None:
    with pytest.raises(UnavailableError, match="it is not on this machine; HF_HUB_OFFLINE is set, so nothing is "):
        resolve("tiny")


def test_a_download_that_fails_is_a_configuration_error_of_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: ModelPin) -> Path:
        raise OSError(28, "No space left on device\nand more")

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("rag_eval_assets.weights.resolve.download_snapshot", fail)
    with pytest.raises(UnavailableError, match=r"the download failed \(OSError: .*No space left on device"):
        resolve("tiny")
    with pytest.raises(UnavailableError) as error:
        resolve("tiny")
    assert "\n" not in str(error.value)


def test_what_is_told_of_a_model_names_no_folder(cache: Path, tmp_path: Path) -> None:
    described = resolve("tiny", folder=write_model(tmp_path / "given")).describe()
    assert described == {
        "id": "tiny",
        "repo": "somebody/tiny",
        "revision": TINY.revision,
        "weights_sha256": TINY.weights_sha256,
        "source": "folder",
    }


def test_a_file_that_changes_is_hashed_again(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    os.utime(file, ns=(1, 1))
    assert file_sha256(file) == hashlib.sha256(b"one").hexdigest()
    file.write_bytes(b"two")
    os.utime(file, ns=(2, 2))
    assert file_sha256(file) == hashlib.sha256(b"two").hexdigest()


def test_the_cache_folder_of_the_environment_is_used_and_no_model_library_is_imported(tmp_path: Path) -> None:
    """The real client in a process of its own, with the variables that people set."""
    write_cached(tmp_path / "cache", TINY.repo_id)
    code = f"""
import sys
from rag_eval_assets.weights.registry import REGISTRY, ModelPin
from rag_eval_assets.weights.resolve import resolve
import rag_eval_assets.scoring.registry
REGISTRY["tiny"] = {TINY!r}
print(resolve("tiny").source)
print(sorted({{"torch", "transformers", "sentence_transformers", "bert_score"}} & set(sys.modules)))
"""
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    environment.pop("RAG_EVAL_MODELS_DIR", None)
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.stdout.split("\n")[:2], ran.stderr) == (["hub-cache", "[]"], "")
