"""Secrets: named by environment variables, read when a call is really made, and kept out of every text that is kept."""

from __future__ import annotations

import base64
import json
import os
import re
import urllib.parse
from typing import Any

REDACTED = "[redacted]"

KEPT_OUT_OF_ANSWERS = 6
"""Shorter secrets are redacted in error texts only: in an answer they would hit ordinary words."""

_USERINFO = re.compile(r"(?<=://)[^/?#\s@]+@")
_SECRET_PARAMETER = re.compile(
    r"(?i)([?&](?:[\w.-]*(?:key|token|secret|password|passwd|signature|credential)|sig|code|auth)=)[^&#\s\"'<>]+"
)
_CREDENTIAL = re.compile(r"(?i)\b(bearer|basic)(\s+)[\w.~+/=-]{6,}")
_PROVIDER_KEY = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|hf|AKIA)[-_][\w*.-]{6,}|\bAKIA[0-9A-Z]{12,}")


def secret_value(variable: str) -> str | None:
    """The value of an environment variable now; None where it is unset or blank. White space around it is cut."""
    return os.environ.get(variable, "").strip() or None


class Redactor:
    """Replaces the secrets that it has been told of, and what looks like one, by `REDACTED`."""

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()
        self._long_forms: tuple[str, ...] = ()

    def learn(self, value: str) -> None:
        """Redact `value` from now on, as it is and as JSON, URLs and HTTP's basic authentication spell it."""
        if value and value not in self._forms:
            forms = {*self._forms, *_spellings(value)}
            # Longest first, so that no longer spelling is left half when a shorter one is part of it.
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
            self._long_forms = tuple(form for form in self._forms if len(form) >= KEPT_OUT_OF_ANSWERS)

    def error_text(self, text: str) -> str:
        """`text` without secrets, nor what looks like one: userinfo in URLs, values of `key=`, bearer tokens."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        text = _USERINFO.sub("", text)
        text = _SECRET_PARAMETER.sub(rf"\1{REDACTED}", text)
        text = _CREDENTIAL.sub(rf"\1\2{REDACTED}", text)
        return _PROVIDER_KEY.sub(REDACTED, text)

    def body(self, body: bytes) -> bytes:
        """The body of a response without known secrets; bytes that hold none are returned as they are."""
        for form in self._long_forms:
            encoded = form.encode()
            if encoded in body:
                body = body.replace(encoded, REDACTED.encode())
        return body

    def answer(self, value: Any) -> Any:
        """Decoded JSON without known secrets: JSON can spell a letter as an escape that `body` does not see."""
        if not self._long_forms:
            return value
        if isinstance(value, str):
            for form in self._long_forms:
                value = value.replace(form, REDACTED)
            return value
        if isinstance(value, list):
            return [self.answer(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            return {self.answer(key): self.answer(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return value


def looks_secret(name: str, value: str) -> bool:
    """Whether a header or query parameter, by its name or by its value, holds a secret."""
    by_name = re.search(r"(?i)authorization|cookie|token|secret|passw|credential|api[-_]?key|signature|^x-.*key$", name)
    return bool(by_name or _CREDENTIAL.search(value) or _PROVIDER_KEY.search(value))


def _spellings(value: str) -> set[str]:
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    quoted = {urllib.parse.quote(value), urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)}
    return {value, *escaped, *quoted, base64.b64encode(value.encode()).decode()}
