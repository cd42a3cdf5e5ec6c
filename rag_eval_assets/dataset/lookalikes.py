"""What a file looks like that is not of the kind that its name says, told by its first bytes: for error messages only.

Nothing is read differently for what is found here; a file that passes may still be unreadable.
"""

from __future__ import annotations

import codecs
import re

from rag_eval_assets.errors import ConfigurationError

HEAD_BYTES = 4096
"""How many bytes of a file are looked at."""

_DECOMPRESS = "Decompress it first"
NAME_PARQUET = "Name it with 'format: parquet'"
_AS_UTF8 = "Save it as UTF-8"
_AS_CSV = "Save its sheet as CSV in UTF-8"

# UTF-32 before UTF-16: the longer byte order mark begins with the shorter one.
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "is gzip-compressed", _DECOMPRESS),
    (b"\x28\xb5\x2f\xfd", "is zstd-compressed", _DECOMPRESS),
    (b"\xfd7zXZ\x00", "is xz-compressed", _DECOMPRESS),
    (b"PK\x03\x04", "is a ZIP archive, or an Excel workbook", f"Unpack it. {_AS_CSV}"),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook", _AS_CSV),
    (b"PARE", "is encrypted parquet", "Write it without encryption"),
    (b"ARROW1\x00\x00", "is an Arrow IPC file", "Write it as parquet"),
    (b"version https://git-lfs.github.com/spec/", "is a Git LFS pointer", "Fetch the file itself with 'git lfs pull'"),
    (codecs.BOM_UTF32_LE, "is UTF-32 text", _AS_UTF8),
    (codecs.BOM_UTF32_BE, "is UTF-32 text", _AS_UTF8),
    (codecs.BOM_UTF16_LE, "is UTF-16 text", _AS_UTF8),
    (codecs.BOM_UTF16_BE, "is UTF-16 text", _AS_UTF8),
)

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def refuse_lookalike(name: str, kind: str | None, head: bytes) -> None:
    """Raise ConfigurationError where the first bytes are clearly of something else than `kind`.

    Args:
        name: the file's name, for the message.
        kind: `parquet`, `jsonl`, `csv`, or None where it is not known.
        head: the first `HEAD_BYTES` bytes of the file.
    """
    found = _looks_like(kind, head)
    if found is not None:
        raise ConfigurationError(f"data file {name!r} {found[0]}", fix=found[1])


def _looks_like(kind: str | None, head: bytes) -> tuple[str, str] | None:
    for signature, what, fix in _SIGNATURES:
        if head.startswith(signature):
            return what, fix
    # With the NUL, since a column of a CSV may be called PAR1.
    if head.startswith(b"PAR1") and b"\x00" in head:
        return None if kind == "parquet" else ("is parquet", NAME_PARQUET)
    if _is_utf16(head):
        return "is UTF-16 text", _AS_UTF8
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"<(!doctype\s+)?html\b", text, re.IGNORECASE):
        return "is an HTML page", "A download may have saved an error page in its place"
    return _not_json_lines(text) if kind in ("jsonl", None) else None


def _not_json_lines(text: bytes) -> tuple[str, str] | None:
    if text.startswith(b"["):
        return "begins with a JSON array", "Write one JSON object per line into a .jsonl file, as 'jq -c .[]' does"
    if re.match(rb"\{\s*?\n", text):
        return (
            "holds JSON spread over several lines",
            "Write one JSON object per line into a .jsonl file, as 'jq -c .' does",
        )
    return None


def _is_utf16(head: bytes) -> bool:
    """Whether every second byte is mostly NUL and the others hardly are: Latin text without byte order mark."""
    fewer, more = sorted(half.count(0) for half in (head[0::2], head[1::2]))
    return len(head) >= 8 and more > 0.2 * len(head) and fewer <= 0.02 * len(head)


def other_separator(first_line: str) -> str | None:
    """What separates the cells of a CSV's first line if commas do not, as a plural noun; None where nothing does."""
    if "," in first_line:
        return None
    return next((name for separator, name in _SEPARATORS.items() if separator in first_line), None)
