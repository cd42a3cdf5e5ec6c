"""Canonical JSON and the hashes built on it: the one place where content gets its identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def canonical_json(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON with sorted keys; equal values give equal bytes.

    Raises:
        ValueError: a float in `value` is NaN or infinite.
        UnicodeEncodeError: a string in `value` holds a lone surrogate.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def text_hash(text: str) -> str:
    """SHA-256 of the UTF-8 bytes of `text`, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def sequence_hash(items: Iterable[str]) -> str:
    """SHA-256 over an ordered sequence of strings, each closed by a newline (so that borders cannot shift)."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.encode("utf-8"))
        digest.update(b"\n")
    return digest.hexdigest()


def is_unicode(text: str) -> bool:
    """Whether `text` can be written as UTF-8, that is, holds no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
