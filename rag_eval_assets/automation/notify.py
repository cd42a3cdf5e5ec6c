"""Telling people of a failed run: what a message says, and the ways to send it. Another way is one more class here."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from rag_eval_assets.canonical import content_hash
from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.suite.automation import Notify

MOST_FAULTS = 10
LONGEST_FAULT = 300
"""A message names so many faults, each in so many characters; the run's page has them all."""

ATTEMPTS = 3
SECONDS = 10
PAUSE_SECONDS = 1.0
"""A sensor's look ends after a minute; three tries of ten seconds and the pauses between them fit."""


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong in a run: where, and what was said."""

    where: str
    what: str


@dataclass(frozen=True)
class FailedRun:
    """A failed run as a message tells of it.

    Attributes:
        suite: the suite's name.
        run_date: the run date, YYYY-MM-DD; None where the run was about none.
        targets: slugs of the targets that something failed of; empty where it was shared by all.
        faults: what failed, at most `MOST_FAULTS` of them.
        more: how many further faults are left out.
        run_id: Dagster's id of the run.
        link: address of the run's page.
    """

    suite: str
    run_date: str | None
    targets: tuple[str, ...]
    faults: tuple[Fault, ...]
    more: int
    run_id: str
    link: str

    @property
    def digest(self) -> str:
        """The same for the same failure on another run date, as in a backfill; 16 hexadecimal digits."""
        faults = sorted((fault.where, self._undated(fault.what)) for fault in self.faults)
        return content_hash([self.suite, sorted(self.targets), faults])[:16]

    def _undated(self, text: str) -> str:
        return text.replace(self.run_date, "") if self.run_date else text

    def headline(self) -> str:
        """One line: what failed, for which date and targets."""
        of = f", target {', '.join(self.targets)}" if self.targets else ""
        return f"Evaluation of {self.suite} for {self.run_date or 'no run date'} failed{of}"

    def lines(self) -> list[str]:
        """The faults, a line each, with how many more there are."""
        more = [f"and {self.more} more"] if self.more else []
        return [*(f"{fault.where}: {fault.what}" for fault in self.faults), *more]


def bounded(faults: list[Fault]) -> tuple[tuple[Fault, ...], int]:
    """The first faults with bounded texts of one line, and how many were left out."""
    kept = [Fault(fault.where, " ".join(fault.what.split())[:LONGEST_FAULT]) for fault in faults[:MOST_FAULTS]]
    return tuple(kept), max(len(faults) - MOST_FAULTS, 0)


class Notifier(Protocol):
    """A way to tell people."""

    def send(self, failed: FailedRun) -> None:
        """Send one message; raises EvalError where it cannot be delivered."""
        ...


@dataclass(frozen=True)
class LogNotifier:
    """Writes to a log that people read."""

    log: Callable[[str], None]

    def send(self, failed: FailedRun) -> None:
        """One line per fault."""
        self.log("\n".join([failed.headline(), *failed.lines(), failed.link]))


@dataclass(frozen=True)
class WebhookNotifier:
    """POSTs JSON to an address that an environment variable holds."""

    url_env: str
    body: Callable[[FailedRun], dict[str, Any]]

    def send(self, failed: FailedRun) -> None:
        """Deliver, with a few tries; the address, which often is a secret, stands in no error."""
        url = os.environ.get(self.url_env, "")
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"environment variable {self.url_env} holds no address", fix="Set it where Dagster runs"
            )
        content = json.dumps(self.body(failed)).encode()
        headers = {"content-type": "application/json"}
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_SECONDS)
            try:
                with urllib.request.urlopen(urllib.request.Request(url, content, headers), timeout=SECONDS):
                    return
            except urllib.error.HTTPError as error:
                reason = f"HTTP {error.code}"
                if error.code < 500 and error.code != 429:
                    break
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = type(error).__name__
        raise InfrastructureError(f"the message could not be delivered to the address in {self.url_env} ({reason})")


def webhook_body(failed: FailedRun) -> dict[str, Any]:
    """Everything as fields."""
    return {"event": "run_failed", "headline": failed.headline(), **asdict(failed)}


def slack_body(failed: FailedRun) -> dict[str, Any]:
    """The form of Slack's incoming webhooks, which Mattermost and others take too."""
    link = f"<{failed.link}|run {failed.run_id[:8]}>"
    faults = "\n".join(f"• {_for_slack(line)}" for line in failed.lines())
    return {"text": f"*{_for_slack(failed.headline())}*\n{faults}\n{link}"}


def _for_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


BODIES: Mapping[str, Callable[[FailedRun], dict[str, Any]]] = {"webhook": webhook_body, "slack": slack_body}


def open_notifier(config: Notify, log: Callable[[str], None]) -> Notifier:
    """The way to tell people that a suite names."""
    if config.url_env is None:
        return LogNotifier(log)
    return WebhookNotifier(config.url_env, BODIES[config.kind])
