"""The parts of a suite file that say when Dagster evaluates it by itself, what it warns of, and whom it tells.

None of them bears on what is measured, so they are left out of the suite's hash.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from rag_eval_assets.suite.base import SuiteModel
from rag_eval_assets.suite.cron import cron_fault
from rag_eval_assets.suite.patterns import HUB_ID, POINTER_INTO, S3_PLACE, VARIABLE, WEB_ADDRESS

AUTOMATION = frozenset({"checks", "schedule", "corpus_sensor", "notify", "freshness"})
"""Keys of a suite that the models of this module stand behind."""

_RUNNING = "Whether it runs from the start; else a person switches it on in the page."


class Schedule(SuiteModel):
    """A run for the day, by the clock (UTC)."""

    cron: str = Field(description="Five fields: minute, hour, day, month, weekday; `0 6 * * *` is each day at 06:00.")
    running: bool = Field(False, description=_RUNNING)

    @field_validator("cron")
    @classmethod
    def _cron_is_one(cls, cron: str) -> str:
        fault = cron_fault(cron)
        if fault:
            raise PydanticCustomError("cron", "{fault}", {"fault": fault})
        return cron


class Watch(SuiteModel):
    """What the corpus sensor looks at; one of `file`, `folder`, `huggingface`, `url`, `s3`."""

    file: str | None = Field(None, min_length=1, description="A file, relative to the suite file.")
    folder: str | None = Field(None, min_length=1, description="A folder with all that is below it.")
    huggingface: str | None = Field(None, pattern=HUB_ID, description="A data set on the hub, `owner/name`.")
    revision: str | None = Field(None, min_length=1, description="With `huggingface`: the branch or tag to follow.")
    url: str | None = Field(
        None, pattern=WEB_ADDRESS, description="An address whose answer says which version the corpus has."
    )
    json_pointer: str | None = Field(
        None,
        pattern=POINTER_INTO,
        description="With `url`: the part of a JSON answer that is the version, such as `/version`.",
    )
    token_env: str | None = Field(
        None, pattern=VARIABLE, description="With `url`: environment variable of a bearer token."
    )
    s3: str | None = Field(None, pattern=S3_PLACE, description="A bucket and prefix, `s3://bucket/prefix`.")

    @model_validator(mode="after")
    def _one_source(self) -> Watch:
        named = [name for name in ("file", "folder", "huggingface", "url", "s3") if getattr(self, name) is not None]
        if len(named) != 1:
            raise PydanticCustomError("watch", "name one of 'file', 'folder', 'huggingface', 'url', 's3'")
        for name, owner in (("revision", "huggingface"), ("json_pointer", "url"), ("token_env", "url")):
            if getattr(self, name) is not None and owner not in named:
                raise PydanticCustomError("watch", "'{name}' goes with '{owner}'", {"name": name, "owner": owner})
        return self


class CorpusSensor(SuiteModel):
    """A run for today whenever the corpus has changed and then stayed as it is for a while."""

    watch: Watch | None = Field(
        None, description="Where the corpus is; by default the files that the suite reads it from."
    )
    interval_seconds: int = Field(60, ge=1, le=86_400, description="How often it looks, at most.")
    settle_seconds: int = Field(
        30, ge=0, le=86_400, description="How long a change must stay as it is; an upload in progress changes further."
    )
    running: bool = Field(False, description=_RUNNING)


class Notify(SuiteModel):
    """A message about each failed run of the suite."""

    kind: Literal["log", "webhook", "slack"] = Field(
        description="log: the sensor's log; webhook: a POST of JSON; slack: the same, in the form that Slack takes."
    )
    url_env: str | None = Field(
        None, pattern=VARIABLE, description="Environment variable that holds the address; not for `log`."
    )
    page: str = Field(
        "http://127.0.0.1:3000",
        pattern=WEB_ADDRESS,
        description="Address of Dagster's page, for links to runs.",
    )
    repeat_after_minutes: int = Field(
        60, ge=1, le=10_080, description="The same failure, on whatever run date, is told once in this time."
    )
    at_most_per_hour: int = Field(10, ge=1, le=1000, description="Further messages of an hour are left out.")
    running: bool = Field(False, description=_RUNNING)

    @model_validator(mode="after")
    def _address_goes_with_kind(self) -> Notify:
        if (self.kind == "log") == (self.url_env is not None):
            raise PydanticCustomError("notify", "'url_env' goes with the kinds webhook and slack, and is needed there")
        return self


class Freshness(SuiteModel):
    """How old the newest report of a target may be before the page says so."""

    fail_after_hours: float = Field(ge=0.05, le=8_760, description="Older than this is overdue.")
    warn_after_hours: float | None = Field(None, ge=0.02, le=8_760, description="Older than this is worth a warning.")

    @model_validator(mode="after")
    def _warns_first(self) -> Freshness:
        if self.warn_after_hours is not None and self.warn_after_hours >= self.fail_after_hours:
            raise PydanticCustomError("freshness", "'warn_after_hours' must be less than 'fail_after_hours'")
        return self


class UpperBound(SuiteModel):
    """A check that a figure is at most so large."""

    at_most: float = Field(0.05, ge=0, le=1, description="The bound.")
    blocking: bool = Field(False, description="Fail the run and make nothing downstream, instead of a warning.")


class LowerBound(SuiteModel):
    """A check that a share is at least so large."""

    at_least: float = Field(0.95, ge=0, le=1, description="The bound.")
    blocking: bool = Field(False, description="Fail the run and make nothing downstream, instead of a warning.")


class NoBound(SuiteModel):
    """A check that no row may fail."""

    blocking: bool = Field(False, description="Fail the run and make nothing downstream, instead of a warning.")


class Checks(SuiteModel):
    """Bounds of the checks; the table contract is no choice, it always blocks."""

    error_rate: UpperBound = Field(
        default_factory=lambda: UpperBound.model_validate({}), description="Share of calls that failed."
    )
    completeness: LowerBound = Field(
        default_factory=lambda: LowerBound.model_validate({}),
        description="Share of the examples with a reference that a scorer gave a score to.",
    )
    corpus_coverage: LowerBound = Field(
        default_factory=lambda: LowerBound.model_validate({}),
        description="Share of the ground-truth contexts whose document is in the corpus.",
    )
    sound_scores: NoBound = Field(
        default_factory=lambda: NoBound.model_validate({}), description="Scores are finite and in range."
    )
    drift: UpperBound = Field(
        default_factory=lambda: UpperBound.model_validate({}),
        description="Fall of a mean against the newest earlier run date with the same data set.",
    )
