# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Files of a data set on the Hugging Face hub: the parquet shards of one split at one exact revision.

The only module that calls huggingface_hub for data; its published types are partly unknown.
"""

from __future__ import annotations

import glob
import json
import re
import sys
from pathlib import Path

from rag_eval_assets.errors import ConfigurationError, UnavailableError
from rag_eval_assets.suite.models import HuggingFaceDataSet
from rag_eval_assets.weights.hashes import file_sha256
from rag_eval_assets.weights.hub import HUB_WAYS, numbered

_UNVERIFIED = " (the newest of its main branch, which the first download resolves and keeps in a lock file)"


def hub_files(
    config: HuggingFaceDataSet, *, lock: Path, suite: str = "the suite", offline: bool = False
) -> tuple[str, list[Path]]:
    """The exact revision and the local paths of the split's parquet shards, downloaded where they are not cached.

    With `offline`, as in a replay, the hub is not asked: the cache has them all, or they cannot be had.

    `revision: unverified` is resolved to a commit once and kept in `lock` beside the suite file, so that later runs
    read the same bytes. `suite` is what messages call the file to write another source into.

    Raises:
        ConfigurationError: the data set, revision or split does not exist or cannot be reached and is not cached.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars, logging

    logging.set_verbosity_error()  # its retries; what comes of them is told in one line
    if not sys.stderr.isatty():  # the client draws its bars into logs and pipes too, even where all is cached
        disable_progress_bars()
    locked = _locked_revision(config, lock)
    revision = locked or config.revision
    wanted = None if revision == "unverified" else revision
    pattern = f"**/{glob.escape(config.split or '')}-*.parquet"
    try:
        folder = Path(
            snapshot_download(
                config.huggingface,
                repo_type="dataset",
                revision=wanted,
                allow_patterns=[pattern, pattern.removeprefix("**/")],
                local_files_only=offline,
            )
        )
    # Its own errors, its HTTP library's, the system's: whichever it is, the data set cannot be had.
    except Exception as error:
        reason, fix = _why(error, lock if locked else None, suite, offline=offline)
        raise UnavailableError(
            f"split {config.split!r} of data set {config.huggingface!r} at revision {revision!r}"
            f"{_UNVERIFIED if wanted is None else ''} cannot be had from the hub ({reason})",
            fix=fix,
        ) from error
    files = sorted(folder.glob(pattern))
    if not files:
        raise ConfigurationError(
            f"data set {config.huggingface!r} at revision {folder.name!r} has no parquet file of split "
            f"{config.split!r} (none is called {pattern.removeprefix('**/')})",
            fix="Check 'split', or download the file and name it with 'file:'",
        )
    folders = sorted({file.parent.relative_to(folder).as_posix() for file in files})
    if len(folders) > 1:  # configurations, such as languages: they are data sets of their own
        raise ConfigurationError(
            f"data set {config.huggingface!r} at revision {folder.name!r} has files of split {config.split!r} in "
            f"several folders: {', '.join(folders[:10])}",
            fix="Download those of one folder and name them with 'file:'",
        )
    _require_all_shards(config, files)
    _require_listed_bytes(config, files)
    if revision == "unverified" and re.fullmatch(r"[0-9a-f]{40}", folder.name):
        _write_lock(config, lock, folder.name)
    return folder.name, files


def _why(error: Exception, lock: Path | None, suite: str, *, offline: bool) -> tuple[str, str]:
    """Why the client could not get a data set, in a few words, and what to do; `lock` where it named the revision.

    The client wraps what happened first in an error about its cache.
    """
    from huggingface_hub import errors

    chain = [error]
    while isinstance(chain[-1].__cause__, Exception):
        chain.append(chain[-1].__cause__)
    if any(isinstance(cause, errors.GatedRepoError) for cause in chain):
        return "it is gated", (
            "Accept its terms on its page of the hub, and set HF_TOKEN to a token of the account that accepted them"
        )
    refused = [cause.response.status_code for cause in chain if isinstance(cause, errors.HfHubHTTPError)]
    if any(isinstance(c, errors.RepositoryNotFoundError) for c in chain) or refused[:1] in ([401], [403]):
        return f"there is none, or it is private, or HF_TOKEN may not read it: HTTP {refused[0]}", (
            "Check its name under 'huggingface'; set HF_TOKEN to a token of an account that may read it"
        )
    if any(isinstance(cause, errors.RevisionNotFoundError) for cause in chain):
        named = f"the lock file {str(lock)!r} names it; delete that to resolve it anew" if lock else "check 'revision'"
        return "it has no such revision", named[0].upper() + named[1:]
    if offline:
        return "a replay asks nobody, and the cache lacks it or a part of it", (
            "Run it once without replay, or `rag-eval validate` the suite, where the hub can be reached"
        )
    if any(isinstance(cause, errors.OfflineModeIsEnabled) for cause in chain):
        reason = "HF_HUB_OFFLINE is set, and the cache lacks it or a part of it"
    else:
        reason = (str(chain[-1]).strip().splitlines() or [""])[0] or type(chain[-1]).__name__
    by_hand = f"download the split's parquet elsewhere and name it with 'file:' in place of 'huggingface:' in {suite}"
    return reason, numbered([by_hand, *HUB_WAYS])


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
    # Older data sets have a fingerprint behind the numbers.
    named = re.compile(r"-\d+-of-(\d+)(-[0-9a-f]+)?\.parquet$")
    counted = [found for file in files if (found := named.search(file.name))]
    announced = max((int(found[1]) for found in counted), default=0)
    if len(counted) < announced:
        raise ConfigurationError(
            f"data set {config.huggingface!r}: of the {announced} files of split {config.split!r} {len(counted)} "
            f"{'is' if len(counted) == 1 else 'are'} in the cache",
            fix="Connect once so that the others are downloaded",
        )


def _require_listed_bytes(config: HuggingFaceDataSet, files: list[Path]) -> None:
    """The cache names what a link points to after the SHA-256 that the hub lists, and the client checks sizes alone."""
    for file in files:
        blob = file.resolve()
        if re.fullmatch(r"[0-9a-f]{64}", blob.name) and file_sha256(blob) != blob.name:
            raise ConfigurationError(
                f"data set {config.huggingface!r}: file {file.name!r} in the cache has other bytes than the hub lists",
                fix=f"Delete {blob} to have it downloaded again",
            )


def _write_lock(config: HuggingFaceDataSet, lock: Path, commit: str) -> None:
    """Best effort: a packaged suite may lie in a folder that cannot be written; then it resolves again next time."""
    held = _read_lock(lock) if lock.is_file() else {}
    try:
        lock.write_text(json.dumps({**held, config.huggingface: commit}, indent=2) + "\n", encoding="utf-8")
    except OSError:
        return
