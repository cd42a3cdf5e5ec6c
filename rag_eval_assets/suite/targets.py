"""The targets of a suite file: what is asked, how, and where in its answers the parts lie."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from rag_eval_assets.recording.secrets import looks_secret
from rag_eval_assets.suite.base import SuiteModel
from rag_eval_assets.suite.patterns import POINTER, VARIABLE
from rag_eval_assets.suite.urls import check_url

QUESTION = "{question}"
"""Stands for the question in templates of URLs, bodies and prompts."""

FROM_ENVIRONMENT = "from the environment"
"""Tag of a header's value that is no text; it stands in no file, but in pydantic's places of faults."""

Pointer = Annotated[str, Field(pattern=POINTER, description="JSON pointer (RFC 6901), such as /choices/0/text.")]


class Chunking(SuiteModel):
    """How documents are cut into passages: whole sentences, with the last ones of a passage opening the next."""

    max_words: int = Field(120, ge=8, le=100_000, description="Most words of a passage; a longer sentence is cut.")
    overlap_sentences: int = Field(1, ge=0, le=20, description="Sentences that a passage shares with the one before.")


PlantedFault = Literal["shuffled_index", "refusals", "swapped_numbers"]


class _Target(SuiteModel):
    generator: str | None = Field(
        None, min_length=1, description="Name of the generator in the report, where the target's answers name none."
    )

    def settings(self) -> dict[str, Any]:
        """What its answers depend on; a table that was made with other settings is out of date."""
        return self.model_dump(mode="json", exclude={"api_key_env", "timeout_seconds", "max_retries"})


class EmbeddedTarget(_Target):
    """A small RAG pipeline inside this process: dense retrieval and extractive answers; offline, deterministic."""

    type: Literal["embedded"]
    model: str = Field("all-MiniLM-L6-v2", description="Sentence encoder, an id of the model registry.")
    top_k: int = Field(5, ge=1, le=1000, description="How many passages are retrieved.")
    chunking: Chunking = Field(
        default_factory=lambda: Chunking.model_validate({}), description="Cutting into passages."
    )
    answer_sentences: int = Field(2, ge=1, le=20, description="How many sentences an answer quotes at most.")
    planted_fault: PlantedFault | None = Field(
        None, description="Breaks the pipeline on purpose, to see which figures move; see the suite planted-faults."
    )


class PassagePointers(SuiteModel):
    """Where the passages lie in an answer, and their parts in a passage."""

    list: Pointer = Field(description="The list of passages, best first. A passage may be a text or an object.")
    id: Pointer = Field("/id", description="Inside a passage: its id. A pointer that is left out may lead nowhere.")
    document_id: Pointer = Field("/document_id", description="Inside a passage: id of the document it was cut from.")
    text: Pointer = Field("/text", description="Inside a passage: its text.")
    score: Pointer = Field("/score", description="Inside a passage: the retriever's score, a number.")


class ResponsePointers(SuiteModel):
    """Where the parts of an answer lie in the JSON that a target returns."""

    answer: Pointer = Field(description="The answer, a text; null is an empty answer.")
    generator: Pointer | None = Field(None, description="Name of the generating model, where the answer says it.")
    passages: PassagePointers | None = Field(None, description="Retrieved passages; else retrieval is not judged.")
    input_tokens: Pointer | None = Field(None, description="Tokens that were read.")
    output_tokens: Pointer | None = Field(None, description="Tokens that were written.")
    cost_usd: Pointer | None = Field(None, description="Cost in US dollars; where it is named, prices are not used.")


class Prices(SuiteModel):
    """What tokens cost; there are no built-in prices."""

    input_usd_per_million_tokens: float = Field(0.0, ge=0, description="US dollars per million tokens read.")
    output_usd_per_million_tokens: float = Field(0.0, ge=0, description="US dollars per million tokens written.")


class FromEnvironment(SuiteModel):
    """A header's value that only the environment holds; it is read at the first real call, and never in replay."""

    env: str = Field(pattern=VARIABLE, description="Name of the environment variable.")
    prefix: str = Field("", description="Stands before the value, such as 'Bearer '.")


def _header_kind(value: Any) -> str:
    return "text" if isinstance(value, str) else FROM_ENVIRONMENT


HeaderValue = Annotated[
    Annotated[str, Tag("text")] | Annotated[FromEnvironment, Tag(FROM_ENVIRONMENT)], Discriminator(_header_kind)
]


class _Called(_Target):
    timeout_seconds: float = Field(120.0, gt=0, le=3600, description="For one attempt, its whole answer included.")


class _Remote(_Called):
    url: str = Field(min_length=1, description="Address that is called.")
    max_retries: int = Field(2, ge=0, le=20, description="Further attempts after 429, 5xx, timeouts, lost connections.")
    prices: Prices | None = Field(None, description="Prices of tokens, for the cost of an answer.")

    @field_validator("url")
    @classmethod
    def _url_can_be_called(cls, url: str) -> str:
        check_url(url.replace(QUESTION, "question"))
        return url


class HttpTarget(_Remote):
    """A RAG service behind any HTTP interface that answers in JSON."""

    type: Literal["http"]
    method: Literal["GET", "POST", "PUT", "PATCH"] = Field("POST", description="HTTP method.")
    headers: dict[str, HeaderValue] = Field(
        default_factory=dict[str, HeaderValue],
        description="Headers: a text, or {env: NAME, prefix: 'Bearer '} for what must stand in no file.",
    )
    body: JsonValue = Field(
        None,
        description="Body; {question} is replaced in its texts. JSON is sent as JSON; a text is sent as it is, the "
        "question escaped as its Content-Type asks for (by default as inside a JSON string).",
    )
    response: ResponsePointers = Field(description="Where the parts of the answer lie.")

    @field_validator("headers")
    @classmethod
    def _headers_hold_no_secret(cls, headers: dict[str, HeaderValue]) -> dict[str, HeaderValue]:
        seen: set[str] = set()
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or name.lower() in seen:
                raise PydanticCustomError(
                    "header", "header {name} stands twice or is no header name", {"name": repr(name)}
                )
            seen.add(name.lower())
            if isinstance(value, str) and looks_secret(name, value):
                # The message names no value: it would stand in a log.
                raise PydanticCustomError(
                    "header_secret",
                    "header {name} looks like a secret; name an environment variable: {name}: {env: MY_VARIABLE}",
                    {"name": name},
                )
            if isinstance(value, str) and re.search(r"[\r\n\0]", value):
                raise PydanticCustomError("header", "header {name} holds a line break", {"name": repr(name)})
        return headers

    @model_validator(mode="after")
    def _question_is_sent(self) -> HttpTarget:
        if self.method == "GET" and self.body is not None:
            raise PydanticCustomError("body", "a GET request has no 'body'; put {question} into 'url'")
        templates = [self.url, *_texts(self.body)]
        if not any(QUESTION in template for template in templates):
            raise PydanticCustomError("question", "neither 'url' nor 'body' holds the placeholder {question}")
        for match in re.finditer(r"\{[^{}]*\}", self.url):
            if match.group() != QUESTION:
                raise PydanticCustomError(
                    "placeholder", "url holds {found}; the one placeholder is {question}", {"found": match.group()}
                )
        return self


class OpenAICompatibleTarget(_Remote):
    """A service with OpenAI's chat completions, and perhaps passages in its answers."""

    type: Literal["openai-compatible"]
    model: str = Field(min_length=1, description="Model that the service is asked for.")
    api_key_env: str | None = Field(
        None,
        pattern=VARIABLE,
        description="Environment variable with the key; read at the first real call, and never in replay.",
    )
    system: str | None = Field(None, min_length=1, description="System message.")
    params: dict[str, JsonValue] = Field(
        default_factory=dict[str, JsonValue], description="Further fields of the request, such as temperature."
    )
    prompt: str = Field(QUESTION, description="The user's message; {question} is replaced.")
    passages: PassagePointers | None = Field(
        None, description="Retrieved passages in the answer, where the service returns them beside the choices."
    )

    @model_validator(mode="after")
    def _question_is_sent(self) -> OpenAICompatibleTarget:
        if QUESTION not in self.prompt:
            raise PydanticCustomError("question", "'prompt' does not hold the placeholder {question}")
        if QUESTION in self.url:
            raise PydanticCustomError("question", "the placeholder {question} belongs into 'prompt', not into 'url'")
        taken = sorted({"model", "messages", "stream"} & set(self.params))
        if taken:
            raise PydanticCustomError("params", "'params' may not hold {name}", {"name": repr(taken[0])})
        return self


class ShellTarget(_Called):
    """A command that is started for each question, reads it on stdin and writes the answer on stdout."""

    type: Literal["shell"]
    command: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="Program and arguments; it runs in the suite file's folder, with no shell between."
    )
    response: ResponsePointers | None = Field(
        None, description="Where the parts lie in JSON on stdout; without it all of stdout is the answer."
    )
    prices: Prices | None = Field(None, description="Prices of tokens, for the cost of an answer.")


Target = Annotated[EmbeddedTarget | HttpTarget | OpenAICompatibleTarget | ShellTarget, Field(discriminator="type")]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif value is not None:
        yield json.dumps(value, ensure_ascii=False)
