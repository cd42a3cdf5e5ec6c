"""Words for people that several places put together alike."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`; for nouns that take an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counted_doing(count: int, noun: str, one: str, more: str) -> str:
    """`1 row has`, `2 rows have`: with the verb of one and of more than one."""
    return f"{counted(count, noun)} {one if count == 1 else more}"
