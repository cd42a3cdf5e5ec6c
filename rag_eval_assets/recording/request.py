"""What a call is known by: its identity without secrets, its canonical request, and the key that is hashed from it.

The form is EvalCore's (Apache-2.0, 0.7.5), so that recordings of either tool have the same keys. A field that is not
set is left out, never null: a field that is added later changes no key of calls that do not use it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, cast

_DIGITS_BEFORE_EXPONENT = 16
_ZEROS_BEFORE_EXPONENT = 5


def request_key(identity: Mapping[str, Any], text: str, trial: int = 0) -> str:
    """Key of a call: SHA-256 of its canonical request, as 64 lower-case hexadecimal digits.

    Args:
        identity: what is called, from one of the functions below.
        text: what is sent: the text to embed, the question.
        trial: 0-based; trial 0 has the key of a call without trials.

    Raises:
        ValueError: `text` or `identity` holds a lone surrogate or a number that is not finite.
    """
    return hashlib.sha256(compact_json(canonical_request(identity, text, trial)).encode("utf-8")).hexdigest()


def canonical_request(identity: Mapping[str, Any], text: str, trial: int = 0) -> dict[str, Any]:
    """The request as it is hashed and stored."""
    return {"identity": dict(identity), "input": text, **({"trial": trial} if trial else {})}


def embeddings_identity(url: str, model: str, *, dimensions: int | None = None) -> dict[str, Any]:
    """Identity of an `/embeddings` call; `url` is as configured, with its slashes and its query."""
    return {"model": model, "type": "embeddings", "url": url, **_set(dimensions=dimensions)}


def chat_identity(
    url: str, model: str, *, system: str | None = None, params: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Identity of a chat completion; empty `params` count as none."""
    return {"model": model, "type": "openai-compatible", "url": url, **_set(system=system, params=params or None)}


def http_identity(
    *,
    method: str,
    url: str,
    headers: Iterable[str] = (),
    body: Any = None,
    response_path: str | None = None,
    **further: Any,
) -> dict[str, Any]:
    """Identity of a call to an `http` target: its templates, and of its headers the lower-cased names alone."""
    names = sorted({name.lower() for name in headers})
    described = _set(headers=names or None, body=body, response_path=response_path, **further)
    return {"http": {"url": url, "method": method.upper(), **described}}


def reference_text(value: Any) -> str | None:
    """The text that a reference of any JSON type stands for: strings as they are, other values as compact JSON."""
    if value is None or isinstance(value, str):
        return value
    return compact_json(value)


def compact_json(value: Any) -> str:
    """`value` as JSON without spaces, keys sorted, numbers in the spelling of Rust's serde_json (1e-7, 1e16, 0.00001).

    Raises:
        ValueError: a float is NaN or infinite.
    """
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return "{" + ",".join(f"{_string(key)}:{compact_json(entries[key])}" for key in sorted(entries)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(compact_json(item) for item in cast("Iterable[Any]", value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures, point = "".join(map(str, digits)), len(digits) + int(exponent)
    if value == 0:
        text = "0.0"
    elif len(figures) <= point <= _DIGITS_BEFORE_EXPONENT:
        text = f"{figures:0<{point}}.0"
    elif 0 < point <= _DIGITS_BEFORE_EXPONENT:
        text = f"{figures[:point]}.{figures[point:]}"
    elif -_ZEROS_BEFORE_EXPONENT < point <= 0:
        text = f"0.{'0' * -point}{figures}"
    else:
        rest = f".{figures[1:]}" if len(figures) > 1 else ""
        text = f"{figures[0]}{rest}e{point - 1}"
    return f"-{text}" if sign else text


def _set(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
