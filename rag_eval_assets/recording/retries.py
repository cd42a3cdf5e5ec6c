"""When a call is tried again, and how long to wait before: the same waits in every run."""

from __future__ import annotations

import datetime as dt
import email.utils
from collections.abc import Mapping
from dataclasses import dataclass

BACK_OFF_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 10.0)
"""Waits before the first retry, the second and so on; the last one repeats. No jitter: runs are to be comparable."""


@dataclass(frozen=True)
class RetryPolicy:
    """How persistent a call is. None of it belongs to a call's identity.

    Attributes:
        max_retries: further attempts after the first, on 429, 5xx, transport faults and timeouts.
        timeout_seconds: for each attempt from connecting to the last byte of the body.
        retry_after_cap_seconds: a `Retry-After` beyond it is shortened to it.
        max_response_bytes: bound on the decompressed body.
    """

    max_retries: int = 2
    timeout_seconds: float = 120.0
    retry_after_cap_seconds: float = 60.0
    max_response_bytes: int = 32 * 2**20

    def wait_seconds(self, retry: int, headers: Mapping[str, str]) -> float:
        """Seconds before the retry number `retry` (0-based), by `Retry-After` where the server gave a readable one."""
        asked = retry_after_seconds(headers)
        if asked is not None:
            return min(asked, self.retry_after_cap_seconds)
        return BACK_OFF_SECONDS[min(retry, len(BACK_OFF_SECONDS) - 1)]


def retry_after_seconds(headers: Mapping[str, str], now: dt.datetime | None = None) -> float | None:
    """Seconds that `Retry-After` asks for: whole or decimal seconds, or an HTTP date (RFC 9110, 10.2.3).

    A date is counted from the response's own `Date`, so that a clock that differs does not matter, else from `now`.
    """
    given = headers.get("retry-after", "").strip()
    try:
        seconds = float(given)
    except ValueError:
        until = _http_date(given)
        if until is None:
            return None
        start = _http_date(headers.get("date", "")) or now or dt.datetime.now(dt.UTC)
        return max(0.0, (until - start).total_seconds())
    return seconds if 0 <= seconds < float("inf") else None


def _http_date(text: str) -> dt.datetime | None:
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=dt.UTC)
