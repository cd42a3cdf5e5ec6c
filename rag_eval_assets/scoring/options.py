"""The settings that all scorers share: which engine computes, and how precisely."""

from __future__ import annotations

from rag_eval_assets.errors import ConfigurationError

PACKED = "packed"
TRANSFORMERS = "transformers"
REFERENCE = "reference"
PRECISIONS = ("fp32", "bf16")


def choose_engine(scorer: str, asked: str | None, precision: str, *, best: str) -> str:
    """The engine that computes: the one that was asked for, else the `best` for the model.

    Raises:
        ConfigurationError: there is no such engine or precision, or the engine computes in fp32 only.
    """
    if precision not in PRECISIONS:
        raise ConfigurationError(f"{scorer}.precision is {precision!r}", fix=f"Use one of {', '.join(PRECISIONS)}")
    if asked not in {None, REFERENCE}:
        raise ConfigurationError(f"{scorer}.engine is {asked!r}", fix=f"Leave it out, or use {REFERENCE!r}")
    engine = asked or best
    if engine != PACKED and precision != PRECISIONS[0]:
        raise ConfigurationError(
            f"{scorer}.precision is {precision!r}, which the {engine} engine does not have", fix="Use fp32"
        )
    return engine
