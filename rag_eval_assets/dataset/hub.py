# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Files of a data set on the Hugging Face hub: the parquet shards of one split at one exact revision.

The only module that calls huggingface_hub for data; its published types are partly unknown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.models import HuggingFaceDataSet


def hub_files(config: HuggingFaceDataSet, *, lock: Path) -> tuple[str, list[Path]]:
    """The exact revision and the local paths of the split's parquet shards, downloaded where they are not cached.

    `revision: unverified` is resolved to a commit once and kept in `lock` beside the suite file, so that later runs
    read the same bytes.

    Raises:
        ConfigurationError: the data set, revision or split does not exist or cannot be reached and is not cached.
    """
    from huggingface_hub import snapshot_download

    revision = _locked_revision(config, lock) or config.revision
    wanted = None if revision == "unverified" else revision
    pattern = f"**/{config.split}-*.parquet"
    try:
        folder = Path(
            snapshot_download(
                config.huggingface,
                repo_type="dataset",
                revision=wanted,
                allow_patterns=[pattern, pattern.removeprefix("**/")],
            )
        )
    # Its own errors, its HTTP library's, the system's: whichever it is, the data set cannot be had.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigurationError(
            f"data set {config.huggingface!r} at revision {revision!r} cannot be had from the hub ({reason})",
            fix="Connect once so that it is cached, or set HF_HOME to a folder that holds it, "
            "or download the split's parquet and name it with 'file:'",
        ) from error
    files = sorted(folder.glob(pattern))
    if not files:
        raise ConfigurationError(
            f"data set {config.huggingface!r} at revision {folder.name!r} has no parquet file of split "
            f"{config.split!r}",
            fix="Check 'split'",
        )
    _require_all_shards(config, files)
    if revision == "unverified" and re.fullmatch(r"[0-9a-f]{40}", folder.name):
        _write_lock(config, lock, folder.name)
    return folder.name, files


def _locked_revision(config: HuggingFaceDataSet, lock: Path) -> str | None:
    if config.revision != "unverified" or not lock.is_file():
        return None
    locked: object = _read_lock(lock).get(config.huggingface)
    return locked if isinstance(locked, str) else None


def _read_lock(lock: Path) -> dict[str, object]:
    try:
        held: object = json.loads(lock.read_text(encoding="utf-8"))
        if not isinstance(held, dict):
            raise ValueError("not a JSON object")
    except (ValueError, OSError) as error:
        # Resolving again instead would quietly read another revision than the runs before.
        raise ConfigurationError(
            f"lock file {str(lock)!r} cannot be read ({error})",
            fix="Restore it, or delete it to resolve the data sets' revisions anew",
        ) from error
    return {str(name): commit for name, commit in held.items()}


def _require_all_shards(config: HuggingFaceDataSet, files: list[Path]) -> None:
    """A cache that an interrupted download left holds some of `<split>-00000-of-00002.parquet` and its siblings."""
    counted = [found for file in files if (found := re.search(r"-\d+-of-(\d+)\.parquet$", file.name))]
    announced = max((int(found[1]) for found in counted), default=0)
    if len(counted) < announced:
        raise ConfigurationError(
            f"data set {config.huggingface!r}: {len(counted)} of the {announced} files of split {config.split!r} are "
            "in the cache",
            fix="Connect once so that the others are downloaded",
        )


def _write_lock(config: HuggingFaceDataSet, lock: Path, commit: str) -> None:
    """Best effort: a packaged suite may lie in a folder that cannot be written; then it resolves again next time."""
    held = _read_lock(lock) if lock.is_file() else {}
    try:
        lock.write_text(json.dumps({**held, config.huggingface: commit}, indent=2) + "\n", encoding="utf-8")
    except OSError:
        return
