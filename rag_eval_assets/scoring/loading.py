"""What every model load shares: silence on both streams, one load at a time, and the files that are read beforehand."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.resolve import ResolvedModel

LOAD_LOCK = threading.RLock()
"""Held while a model is loaded: it is loaded once per process, and transformers changes global state meanwhile."""

_LOGGERS = ("transformers", "sentence_transformers", "huggingface_hub", "matplotlib")


@contextmanager
def quiet_loading() -> Generator[None]:
    """Keep the libraries' progress bars, load reports and warnings off the streams, then put everything back."""
    from transformers.utils import logging as transformers_logging

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    with LOAD_LOCK, warnings.catch_warnings():
        levels = [logger.level for logger in loggers]
        bars = transformers_logging.is_progress_bar_enabled()
        warnings.simplefilter("ignore")
        transformers_logging.disable_progress_bar()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if bars:
                transformers_logging.enable_progress_bar()


def read_json(model: ResolvedModel, name: str) -> dict[str, Any]:
    """A JSON object among the model's files.

    Raises:
        ConfigurationError: the file is missing or holds no JSON object.
    """
    file: Path = model.path / name
    try:
        content: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"Model {model.pin.id!r}: {file} cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"Model {model.pin.id!r}: {file} holds no JSON object")
    return cast("dict[str, Any]", content)
