"""The base of every part of a suite file: strict, and an unknown key is an error that names the nearest known one."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError


class SuiteModel(BaseModel):
    """Base of all parts: unknown keys are errors that name the nearest known one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        given: list[Any] = list(data)  # pyright: ignore[reportUnknownArgumentType]
        problems = [_unknown_key(str(key), known) for key in given if key not in known]
        if problems:
            raise PydanticCustomError("unknown_key", "{problems}", {"problems": "; ".join(problems)})
        return data  # pyright: ignore[reportUnknownVariableType]


def _unknown_key(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
    return f"unknown key {key!r} ({hint})"
