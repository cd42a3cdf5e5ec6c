"""Taking an answer apart: JSON pointers (RFC 6901) into what a target returned, and the types that must lie there.

Written here, since the packages for it take a text for a list of letters.
"""

from __future__ import annotations

import math
from typing import Any, cast

from rag_eval_assets.suite.targets import PassagePointers, Prices, ResponsePointers
from rag_eval_assets.targets.base import Answer, Passage


class ShapeError(Exception):
    """An answer does not have the shape that the suite describes; its text says what lies there instead."""


def resolve(document: Any, pointer: str) -> Any:
    """The value that `pointer` leads to; "" is the whole document.

    Raises:
        ShapeError: it leads nowhere; the text names the last part that was there and what it holds.
    """
    value = document
    walked = ""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = cast("dict[str, Any]", value)[key]
        elif isinstance(value, list) and _is_index(key) and int(key) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(key)]
        else:
            raise ShapeError(f"has nothing at {pointer!r}: {walked or 'the top'} is {_describe(value)}")
        walked += f"/{part}"
    return value


def read_answer(document: Any, pointers: ResponsePointers) -> Answer:
    """The answer that lies in `document`.

    Raises:
        ShapeError: the pointer of the answer or of a passage leads nowhere, or to a value of another type. The others
            may lead nowhere, since services leave usage out now and then.
    """
    return Answer(
        text=_text(resolve(document, pointers.answer), pointers.answer),
        passages=None if pointers.passages is None else read_passages(document, pointers.passages),
        generator=read_name(document, pointers.generator),
        input_tokens=read_count(document, pointers.input_tokens),
        output_tokens=read_count(document, pointers.output_tokens),
        cost_usd=_optional_number(document, pointers.cost_usd),
    )


def read_name(document: Any, pointer: str | None) -> str | None:
    """The text that lies at `pointer`; None where there is none: an answer is not thrown away for it."""
    value = _optional(document, pointer)
    return value if isinstance(value, str) and value.strip() else None


def read_count(document: Any, pointer: str | None) -> int | None:
    """The whole number that lies at `pointer`; None where there is none."""
    value = _optional_number(document, pointer)
    return None if value is None else int(value)


def read_passages(document: Any, pointers: PassagePointers) -> tuple[Passage, ...] | None:
    """The passages that lie in `document`; None where null lies there.

    Raises:
        ShapeError: see `read_answer`. A pointer inside a passage that the suite does not name may lead nowhere.
    """
    found = resolve(document, pointers.list)
    if found is None:
        return None
    if not isinstance(found, list):
        raise ShapeError(f"has no list of passages at {pointers.list!r} but {_describe(found)}")
    return tuple(_passage(item, pointers, place) for place, item in enumerate(cast("list[Any]", found)))


def priced(answer: Answer, prices: Prices | None) -> float | None:
    """Cost of an answer in US dollars: what it says itself, else tokens times prices, else None."""
    if answer.cost_usd is not None or prices is None:
        return answer.cost_usd
    if answer.input_tokens is None and answer.output_tokens is None:
        return None
    read = (answer.input_tokens or 0) * prices.input_usd_per_million_tokens
    written = (answer.output_tokens or 0) * prices.output_usd_per_million_tokens
    return (read + written) / 1e6


def _passage(item: Any, pointers: PassagePointers, place: int) -> Passage:
    def part(name: str) -> Any:
        pointer: str = getattr(pointers, name)
        if isinstance(item, str) and name not in pointers.model_fields_set:
            return item if name == "text" else None
        try:
            return resolve(item, pointer)
        except ShapeError as error:
            if name in pointers.model_fields_set:
                raise ShapeError(f"in passage {place} {error}") from None
            return None

    where = f"{pointers.list}/{place}"
    score = part("score")
    return Passage(
        id=_name(part("id"), f"{where}{pointers.id}"),
        document_id=_name(part("document_id"), f"{where}{pointers.document_id}"),
        text=_text(part("text"), f"{where}{pointers.text}"),
        score=None if score is None else _number(score, f"{where}{pointers.score}"),
    )


def _text(value: Any, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ShapeError(f"has no text at {where!r} but {_describe(value)}")
    return value


def _name(value: Any, where: str) -> str | None:
    """An id; services use numbers too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value, where)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ShapeError(f"has no number at {where!r} but {_describe(value)}")
    return float(value)


def _optional(document: Any, pointer: str | None) -> Any:
    try:
        return None if pointer is None else resolve(document, pointer)
    except ShapeError:
        return None


def _optional_number(document: Any, pointer: str | None) -> float | None:
    value = _optional(document, pointer)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if usable else None


def _is_index(key: str) -> bool:
    return key == "0" or (key.isascii() and key.isdigit() and key[0] != "0")


def _describe(value: Any) -> str:
    """What lies somewhere, without its texts."""
    if isinstance(value, dict):
        names = ", ".join(sorted(str(key)[:40] for key in cast("dict[Any, Any]", value))[:10])
        return f"an object with {names}" if names else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(cast('list[Any]', value))}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "a text" if isinstance(value, str) else "a number"
