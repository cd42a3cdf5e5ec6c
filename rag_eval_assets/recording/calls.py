"""What a call that failed says of itself, whoever made it."""

from __future__ import annotations


class CallError(Exception):
    """One call failed, after all its attempts. Its text holds no secret.

    Attributes:
        kind: what failed, in a word that equal causes share: the status (`401`, `429`, `500`), `transport`, `timeout`,
            `bad_response` (an answer that is not what it should be), `too_large`, `bad_request` (it cannot be sent),
            `blocked` (nothing may go out), `recording_missing`, `recording_damaged`, `not_started` and `exit` (of a
            command), `target_fault`.
        attempts: how many times the call was tried, 0 where it was not made.
    """

    def __init__(self, kind: str, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts
