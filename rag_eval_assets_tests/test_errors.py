"""Errors carry what was wrong, what to do, and the exit code of the command line."""

from __future__ import annotations

from rag_eval_assets.errors import (
    ConfigurationError,
    EvalError,
    InfrastructureError,
    QualityError,
    RecordingMissingError,
)


def test_each_kind_has_its_exit_code() -> None:
    kinds = (QualityError, ConfigurationError, InfrastructureError, RecordingMissingError)
    assert [kind.exit_code for kind in kinds] == [1, 2, 3, 4]
    assert all(issubclass(kind, EvalError) for kind in kinds)


def test_the_text_is_the_message_and_then_the_way_out() -> None:
    assert str(ConfigurationError("key 'x' is unknown", fix="Remove it")) == "key 'x' is unknown. Remove it"
    assert str(ConfigurationError("key 'x' is unknown")) == "key 'x' is unknown"
