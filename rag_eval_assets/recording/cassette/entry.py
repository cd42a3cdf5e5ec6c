"""One recorded call as a line of text, and lines that are none."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_eval_assets.recording.request import compact_json

_KEY = re.compile(rb'"key"\s*:\s*"([0-9a-f]{64})"')


@dataclass(frozen=True)
class Entry:
    """One recorded call.

    Attributes:
        key: `request.request_key` of the request.
        request: `identity`, `input`, and `trial` where it is not 0.
        response: what the call returned, as JSON.
        meta: what may differ between equal recordings: `recorded_at` (ISO 8601, UTC), `latency_ms`.
    """

    key: str
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    meta: Mapping[str, Any]

    @cached_property
    def response_sha256(self) -> str:
        """Hash of the response; two recordings of a key with another one contradict each other."""
        return _digest(self.response)

    @property
    def recorded_at(self) -> str:
        """When the call was made; the empty string where the line does not say."""
        return str(self.meta.get("recorded_at", ""))

    def to_line(self) -> bytes:
        """The entry as a line of JSON, its newline included; equal entries give equal bytes.

        Raises:
            ValueError: the response holds a number that is not finite, or something that is not JSON.
        """
        content = {
            "key": self.key,
            "meta": self.meta,
            "request": self.request,
            "response": self.response,
            "response_sha256": self.response_sha256,
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        try:
            return text.encode("utf-8") + b"\n"
        except UnicodeEncodeError:  # a lone surrogate in an answer, which only an escape can keep
            return json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"


@dataclass(frozen=True)
class Damage:
    """A line that is no entry.

    Attributes:
        file: its file, relative to the cassette's folder.
        line: 1-based.
        key: the key that it seems to belong to; None where nothing can be told.
        reason: what is wrong with it.
        raw: the line itself.
    """

    file: str
    line: int
    key: str | None
    reason: str
    raw: bytes

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.file}, line {self.line}"


def parse_line(raw: bytes, file: str, line: int) -> Entry | Damage:
    """The entry of a line, its key checked against its request; `has_whole_response` checks the rest on use."""
    try:
        content = json.loads(raw)
        entry = Entry(
            str(content["key"]), dict(content["request"]), dict(content["response"]), dict(content.get("meta") or {})
        )
        stored = str(content["response_sha256"])
        computed = hashlib.sha256(compact_json(entry.request).encode("utf-8")).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Damage(file, line, _key_of(raw), f"not an entry ({type(error).__name__})", raw)
    if computed != entry.key:
        return Damage(file, line, entry.key, "its request has another key", raw)
    # Not hashed again here: 5,000 vectors would take a second, and a run uses few of them.
    entry.__dict__["response_sha256"] = stored
    return entry


def has_whole_response(entry: Entry) -> bool:
    """Whether the response is the one that was recorded, to the last bit."""
    return _digest(entry.response) == entry.response_sha256


def _digest(response: Mapping[str, Any]) -> str:
    """SHA-256 of the response as JSON in ASCII, since an answer may hold a lone surrogate."""
    text = json.dumps(response, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _key_of(raw: bytes) -> str | None:
    found = _KEY.search(raw)
    return found.group(1).decode("ascii") if found else None
