"""Patterns that texts of a suite file follow, each with the words for a person: a pattern itself is no message."""

from __future__ import annotations

from rag_eval_assets.storage.s3_names import ENV_PATTERN, ENV_RULE

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
POINTER = r"^(/([^~/]|~[01])*)*$"
POINTER_INTO = r"^/"
HUB_ID = r"^[^/\s]+/[^/\s]+$"
WEB_ADDRESS = r"^https?://"
S3_PLACE = r"^s3://[^/]+(/.*)?$"
SCORER_NAME = r"^[a-z][a-z0-9_]{0,62}$"
NOT_BLANK = r"\S"

_NO_POINTER = "is no JSON pointer; its parts begin with '/', as in /answer or /choices/0/text"

WORDS = {
    VARIABLE: "is no name of an environment variable (letters, digits and underscores, no digit first)",
    POINTER: f"{_NO_POINTER}, and '~' is written '~0'",
    POINTER_INTO: _NO_POINTER,
    HUB_ID: "is no id of a data set on the hub, owner/name",
    WEB_ADDRESS: "is no address that begins with http:// or https://",
    S3_PLACE: "is no place on S3, s3://bucket or s3://bucket/prefix",
    SCORER_NAME: "is no name of a scorer (lower-case letters, digits and underscores, a letter first, at most 63)",
    NOT_BLANK: "is blank",
    ENV_PATTERN: f"is no label of an environment ({ENV_RULE})",
}
"""Pattern to what is said of a text that does not follow it."""
