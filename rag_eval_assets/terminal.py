"""Makes text that others wrote safe to show on a terminal; it does nothing for HTML or JSON."""

from __future__ import annotations

import re

_ESCAPED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1 controls, DEL: they move the cursor, colour, or clear
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the reading direction: they reorder what is seen
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff]"  # lone surrogates, which cannot be written as UTF-8
)


def sanitize(text: str) -> str:
    r"""`text` on one line without anything that steers a terminal.

    A tab becomes a space, CR and LF visible `\r` and `\n`, other control characters `\xNN`, direction marks, line
    separators and lone surrogates `\u{nnnn}`. Joiners (ZWJ, ZWNJ) and all else stay.
    """
    return _ESCAPED.sub(lambda found: _escape(found.group()), text)


def _escape(character: str) -> str:
    named = {"\t": " ", "\r": "\\r", "\n": "\\n"}
    if character in named:
        return named[character]
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{{{code:04x}}}"
