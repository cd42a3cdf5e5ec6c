"""Finds a pinned model on this machine, downloads it where that is allowed, and proves by hash that it is that model.

Nothing is loaded here, and neither torch nor transformers is imported.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rag_eval_assets.errors import ConfigurationError, UnavailableError
from rag_eval_assets.weights.hashes import file_sha256, read_sha256
from rag_eval_assets.weights.hub import HUB_WAYS, cached_snapshots, download_snapshot, is_offline, numbered
from rag_eval_assets.weights.registry import TOKENIZER_FILES, WEIGHTS_FILE, ModelPin, pin

MODELS_DIR_VARIABLE = "RAG_EVAL_MODELS_DIR"
"""Environment variable that names a folder with one sub-folder per model id."""

PACKAGE_FOLDER = "model"
"""Folder inside a weights package that holds the model's files."""

Source = Literal["folder", "hub-cache", "package", "hub-download"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ResolvedModel:
    """A pinned model in a folder of this machine, its weights checked."""

    pin: ModelPin
    path: Path
    source: Source

    def describe(self) -> dict[str, str]:
        """What may be told about it: id, repo, revision, weights_sha256 and source; never the folder."""
        return {**self.pin.describe(), "source": self.source}


def resolve(model_id: str, *, folder: Path | None = None, allow_download: bool = True) -> ResolvedModel:
    """Find the model `model_id` and check the hash of its weights.

    Order: `folder`; `$RAG_EVAL_MODELS_DIR/<model_id>` where that folder exists; the hub's cache at the pinned revision;
    the packaged weights (same bytes, and no download); a download of the pinned revision into the hub's cache.

    Args:
        model_id: an id of the registry.
        folder: a folder that holds the model's files. Nothing else is tried then.
        allow_download: whether the network may be used as the last resort.

    Raises:
        ConfigurationError: the id is unknown, no source has the model, a folder lacks a file, or a hash differs.
    """
    model = pin(model_id)
    chosen = folder if folder is not None else _environment_folder(model)
    if chosen is not None:
        return _from_folder(model, chosen)
    candidates: list[tuple[Source, str, Path]] = []
    candidates.extend(("hub-cache", "the hub cache", path) for path in cached_snapshots(model))
    packaged = _package_folder(model.package) if model.package is not None else None
    if packaged is not None:
        candidates.append(("package", f"the package {model.package}", packaged))
    for source, _, path in candidates:
        if not _missing_files(model, path):
            return _checked(model, path, source)
    found = [_incomplete(where, model, path) for _, where, path in candidates]
    found = found or ["it is not on this machine"]
    if not allow_download:
        raise _unavailable(model, [*found, "downloading is not allowed in this run"])
    if is_offline():
        raise _unavailable(model, [*found, "HF_HUB_OFFLINE is set, so nothing is downloaded"])
    return _download(model, found)


def _environment_folder(model: ModelPin) -> Path | None:
    models_dir = os.environ.get(MODELS_DIR_VARIABLE)
    folder = Path(models_dir) / model.id if models_dir else None
    return folder if folder is not None and folder.is_dir() else None


def _from_folder(model: ModelPin, folder: Path) -> ResolvedModel:
    if not folder.is_dir():
        raise _unavailable(model, [f"the folder {folder} does not exist"])
    if _missing_files(model, folder):
        raise _unavailable(model, [_incomplete(f"the folder {folder}", model, folder)])
    return _checked(model, folder, "folder")


def _package_folder(package: str) -> Path | None:
    """The model's folder in an installed weights package; the package is not imported, for that may import torch."""
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(location) / PACKAGE_FOLDER).is_dir():
            return Path(location) / PACKAGE_FOLDER
    return None


def _download(model: ModelPin, found: Sequence[str]) -> ResolvedModel:
    _logger.info("Downloading model %s, revision %s", model.id, model.revision)
    try:
        fetched = download_snapshot(model)
    # Whatever went wrong, this is the last resort: no network, no such host, no space, an HTTP status.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise _unavailable(model, [*found, f"the download failed ({type(error).__name__}: {reason})"]) from error
    if _missing_files(model, fetched):
        raise _unavailable(model, [*found, _incomplete("the download", model, fetched)])
    return _checked(model, fetched, "hub-download")


def _missing_files(model: ModelPin, folder: Path) -> list[str]:
    missing = [name for name in (WEIGHTS_FILE, *model.files) if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        missing.append(" or ".join(TOKENIZER_FILES))
    return missing


def _incomplete(where: str, model: ModelPin, folder: Path) -> str:
    text = f"{where} lacks {', '.join(_missing_files(model, folder))}"
    if not (folder / WEIGHTS_FILE).is_file() and any(folder.glob("*.bin")):
        text += " (pickled weights are never read)"
    return text


def _checked(model: ModelPin, folder: Path, source: Source) -> ResolvedModel:
    _require(model, folder / WEIGHTS_FILE, file_sha256(folder / WEIGHTS_FILE))
    return ResolvedModel(model, folder, source)


def _require(model: ModelPin, weights: Path, found: str) -> None:
    if found != model.weights_sha256:
        raise ConfigurationError(
            f"Model {model.id!r} (revision {model.revision}): {weights} has SHA-256 {found}, "
            f"expected {model.weights_sha256}",
            fix=f"Remove or replace that file. {_ways(model)}",
        )


def verify(model: ResolvedModel) -> None:
    """Read the weights' file and check its hash: to be called where it is loaded. `resolve` may trust a remembered one.

    Raises:
        ConfigurationError: the file is another one.
    """
    _require(model.pin, model.path / WEIGHTS_FILE, read_sha256(model.path / WEIGHTS_FILE))


def _unavailable(model: ModelPin, found: Sequence[str]) -> UnavailableError:
    return UnavailableError(
        f"Model {model.id!r} (revision {model.revision}) is not available: {'; '.join(found)}", fix=_ways(model)
    )


def _ways(model: ModelPin) -> str:
    ways: list[str] = []
    if model.package is not None:
        ways.append("run pip install 'rag-eval-assets[offline]'")
    ways.append(
        f"put its files into <folder>/{model.id} and set {MODELS_DIR_VARIABLE}=<folder>, "
        f"or name the folder in the suite as models.{model.id}.folder"
    )
    packaged = "" if model.package is not None else ". No package holds its weights"
    return numbered([*ways, *HUB_WAYS]) + packaged
