"""What is asked of the Hugging Face hub's client: what is cached, may it be asked, and please download."""

# The client's overloads carry an unparametrised dict.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_eval_assets.weights.registry import TOKENIZER_FILES, WEIGHTS_FILE, ModelPin

SUITE = "SUITE"
"""Stands in `HUB_WAYS` for the suite, which whoever knows it puts there."""

HUB_WAYS = (
    "copy a cache of the hub that holds it to this machine and name its folder with HF_HOME",
    f"let it download (network access, HF_HUB_OFFLINE unset; `rag-eval validate {SUITE} --download`)",
)
"""What gets a model or a data set from the hub, for messages."""


def is_offline() -> bool:
    """Whether `HF_HUB_OFFLINE` forbids the client to ask the hub."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def numbered(ways: Sequence[str]) -> str:
    """Ways to get something, as one sentence."""
    return "Ways to get it: " + "; ".join(f"({number}) {way}" for number, way in enumerate(ways, 1))


def cached_snapshots(model: ModelPin) -> list[Path]:
    """Folders of the hub's cache with the pinned revision's weights; other files may lack. Never touches the network.

    The weights are asked for by name: the client calls a snapshot incomplete while it lacks any of the repository's
    files, and these repositories hold many that nobody needs.
    """
    from huggingface_hub import try_to_load_from_cache

    names = [name for name in (model.repo_id, model.former_repo_id) if name is not None]
    files = [try_to_load_from_cache(name, WEIGHTS_FILE, revision=model.revision) for name in names]
    return [Path(file).parent for file in files if isinstance(file, str)]


def download_snapshot(model: ModelPin) -> Path:
    """Fetch the pinned revision into the hub's cache and return its folder there.

    Without network the client returns an incomplete folder where it has one. Otherwise it raises errors of its own, of
    its HTTP library and of the operating system.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # its retries; what comes of them is told in one line
    # Named files only: the repositories hold the same weights in several further formats.
    files = [WEIGHTS_FILE, *TOKENIZER_FILES, "special_tokens_map.json", *model.files]
    return Path(snapshot_download(model.repo_id, revision=model.revision, allow_patterns=files))
