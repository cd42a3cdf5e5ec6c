"""Addresses of services in suite files: what is refused before anything is called."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from pydantic_core import PydanticCustomError

_SECRET_WORDS = ("key", "token", "secret", "password", "signature", "sig")


def check_url(url: str) -> str:
    """`url` as it is, where it can be called and holds no secret.

    Raises:
        PydanticCustomError: it is no http or https address, or holds a user, a password or a key. Addresses stand in
            recordings and reports, so that a secret in one would be published.
    """
    if not url or url != url.strip() or any(character.isspace() for character in url):
        raise PydanticCustomError("url", "is no address: it is empty or holds white space")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable:
        raise PydanticCustomError("url", "is no http or https address with a host")
    secret = "@" in parts.netloc or any(
        name.lower().replace("-", "_").split("_")[-1] in _SECRET_WORDS for name, _ in parse_qsl(parts.query)
    )
    if secret:
        # The message names no value: it would stand in a log.
        raise PydanticCustomError(
            "url_secret", "holds a user, a password or a key, which would stand in every recording; use 'api_key_env'"
        )
    return url
