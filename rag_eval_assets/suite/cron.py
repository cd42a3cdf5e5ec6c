"""What is wrong with a cron expression, said when the suite is read and not when Dagster loads it."""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("weekday", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")


def cron_fault(cron: str) -> str | None:
    """Why `cron` is no expression of five fields, in one sentence; None where it is one."""
    fields = cron.split()
    if len(fields) != len(_FIELDS):
        return f"a cron expression has five fields (minute hour day month weekday), this one has {len(fields)}"
    for field, (name, lowest, highest, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if not _is_part(part, lowest, highest, names):
                return f"{part!r} is no {name} ({lowest}-{highest}, a range, `*`, each perhaps with `/step`)"
    return None


def _is_part(part: str, lowest: int, highest: int, names: dict[str, int]) -> bool:
    found = _PART.fullmatch(part.lower())
    if found is None or not part.isascii():
        return False
    if found["step"] is not None and not 1 <= int(found["step"]) <= highest:
        return False
    ends = [_number(end, names) for end in (found["first"], found["last"]) if end is not None]
    if not all(end is not None and lowest <= end <= highest for end in ends):
        return False
    numbers = [end for end in ends if end is not None]
    if len(numbers) < 2:
        return True
    # A step beyond the range's end is no step; Dagster would fire more often than that says.
    span = numbers[1] - numbers[0]
    return span > 0 and (found["step"] is None or int(found["step"]) <= span)


def _number(text: str, names: dict[str, int]) -> int | None:
    return int(text) if text.isdecimal() else names.get(text)
