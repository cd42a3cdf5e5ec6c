# pyright: reportUnknownVariableType=false
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
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

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
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError, ValueError) as error:
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
    if revision == "unverified" and re.fullmatch(r"[0-9a-f]{40}", folder.name):
        _write_lock(config, lock, folder.name)
    return folder.name, files


def _locked_revision(config: HuggingFaceDataSet, lock: Path) -> str | None:
    if config.revision != "unverified" or not lock.is_file():
        return None
    try:
        locked: object = json.loads(lock.read_text(encoding="utf-8"))[config.huggingface]
    except (ValueError, KeyError, OSError):
        return None
    return locked if isinstance(locked, str) else None


def _write_lock(config: HuggingFaceDataSet, lock: Path, commit: str) -> None:
    """Best effort: a packaged suite may lie in a folder that cannot be written; then it resolves again next time."""
    try:
        held: dict[str, str] = json.loads(lock.read_text(encoding="utf-8")) if lock.is_file() else {}
        lock.write_text(json.dumps({**held, config.huggingface: commit}, indent=2) + "\n", encoding="utf-8")
    except (OSError, ValueError):
        return
