"""What the models behind a vendor's Python SDK have in common: clients, falling back, and errors in words.

Calls go through the SDK's documented low-level `post`: its retries, headers and variables serve as they are,
while the typed methods would cost twice the processor time, warn on the console about ageing models, and
stumble over answers of compatible servers that differ in a field which is not read here.
"""

import asyncio
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from typing import Any, ClassVar

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.transport import connections, payload
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.text import whole
from ci_evals.ports import Completion, Prompt
from ci_evals.redaction import Redactor
from ci_evals.templates import render

_JSON_ANSWER = "adapters/prompts/json_answer.md.j2"
_FORM_REFUSED = frozenset({400, 404, 422, 501})
_OF_THE_FORM = re.compile(
    r"response_format|json_schema|json_object|output_config|schema|structured", re.IGNORECASE
)
_OF_SOMETHING_ELSE = re.compile(
    r"(model|deployment)\b.{0,200}\b(not (found|exist)|unavailable)|(unknown|invalid|no such) model"
    r"|model_not_found|\bmodel:|context[ _]?(length|window|size)|too long|too many tokens",
    re.IGNORECASE,
)


class Mode(StrEnum):
    """How the provider is asked for an answer of a certain form."""

    JSON_SCHEMA = "json_schema"
    """The schema goes along, and the provider holds the model to it."""
    JSON_OBJECT = "json_object"
    """The provider sees to JSON; the schema stands in the prompt."""
    TEXT = "text"
    """The schema stands in the prompt, and nothing else is asked of the provider."""


@dataclass(frozen=True)
class Vendor:
    """What tells one SDK from another."""

    name: str
    """As messages call it."""
    module: str
    """The SDK's module, which takes a second or two to import."""
    client: str
    """The class of its asynchronous client."""
    key: str
    """The variable that holds the API key."""
    address: str
    """The variable that holds the address of the API."""
    default_address: str | None
    """The API's own, if it is the same for all."""
    path: str
    modes: tuple[Mode, ...]
    """The forms of asking for JSON that the provider knows, the strictest first."""
    bearer: str | None = None
    """The variable that may hold a bearer token in place of the key."""
    bearer_argument: str = "api_key"
    """The client's argument for it."""


class SdkLLM(ABC):
    """A model behind a vendor's SDK. Implements the port `LLM`.

    A server that refuses a form of asking is asked in the next one: servers that are compatible with a
    provider often know only some of its forms. If the refusal names the form, it is not tried again for the
    rest of this object's life; any other refusal may be about that one question, and weakens no later one.
    """

    vendor: ClassVar[Vendor]

    def __init__(
        self,
        model: str,
        key: str | None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 120,
        *,
        token: str | None = None,
        redactor: Redactor | None = None,
        max_calls: int | None = None,
    ) -> None:
        """Imports the SDK, which takes a second or two.

        Args:
            model: Its name.
            key: The API key; without one `token` counts.
            base_url: Where the API is; without it the vendor's own variable says so, or the vendor is asked.
            max_retries: How often the SDK repeats a failed call.
            timeout: Seconds that each attempt may take in all.
            token: A bearer token in place of the key, for vendors and gateways that give such.
            redactor: Knows the run's secrets, for what is told of errors; the key is added.
            max_calls: How many calls may be under way at once; by default what open files allow.

        Raises:
            UsageError: the key or the address cannot be used.
        """
        self.model = model
        vendor = self.vendor
        self._key_hint = f"set --llm-key, LLM_API_KEY or {vendor.key} to a valid key"
        if token and not key and vendor.bearer:
            self._key_hint = f"set {vendor.bearer} to a valid token"
        self._key = connections.key_value(key or token or "", vendor.name, self._key_hint)
        self._key_argument = vendor.bearer_argument if token and not key else "api_key"
        known = redactor or Redactor()
        self._redactor = Redactor(known.keys | {self._key}, known.values)
        self._sdk = import_module(vendor.module)
        self._max_retries = max_retries
        self._timeout = timeout
        if not base_url and os.environ.get(vendor.address) == "":
            base_url = vendor.default_address  # the SDKs take what a workflow sets to nothing for an address
        # Made only to learn which address the SDK takes: it looks at its own variables.
        try:
            self._url = str(self._new_client(connections.new_client("http:"), base_url).base_url)
        except httpx2.InvalidURL as error:
            raise UsageError(f"the base URL for {vendor.name} cannot be used: {error}") from None
        if not self._url.startswith(("http://", "https://")):
            raise UsageError(f"the base URL {self._url!r} for {vendor.name} is no http(s):// address")
        self._who = f"{vendor.name} at {connections.host_of(self._url)}"
        self._proxy = connections.proxy_for(self._url)
        self._key_held = False
        """Whether the key was accepted once: a 403 after that is about one prompt, not about the key."""
        self._idle: list[Any] = []
        self._max_calls = max_calls or connections.fair_share()
        self._slots: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refused = 0
        """How many of the vendor's forms of asking the server has refused for good."""

    @property
    def mode(self) -> str:
        """How the next question with a schema is asked: `json_schema`, `json_object` or `text`."""
        return self.vendor.modes[self._refused].value

    async def complete(self, prompt: Prompt) -> Completion:
        """Asks once, in the strictest form that the server has not refused for good."""
        prompt = replace(prompt, system=whole(prompt.system), text=whole(prompt.text))
        if prompt.schema is None:
            return self._completion(await self._post(prompt, Mode.TEXT))
        modes = self.vendor.modes
        refused = self._refused
        for place in range(self._refused, len(modes)):
            try:
                fitted = prompt if modes[place] is Mode.JSON_SCHEMA else with_schema(prompt)
                response = await self._post(fitted, modes[place])
            except _FormRefusedError as error:
                # If the plainest form is refused as well, the form was not the trouble: nothing is
                # remembered then, and the last error is the one to show.
                if place == len(modes) - 1:
                    raise error.failure from None
                if error.named and refused == place:
                    refused += 1
            else:
                self._refused = max(self._refused, refused)
                return self._completion(response)
        raise AssertionError("the last form returns or raises")

    async def aclose(self) -> None:
        """Closes every connection. The object can be used again afterwards."""
        while self._idle:
            await self._idle.pop().close()

    @abstractmethod
    def _body(self, prompt: Prompt, mode: Mode) -> dict[str, Any]:
        """The body of a request that asks a prompt in one of the forms, but for the model's name."""

    @abstractmethod
    def _read(self, answer: dict[str, JsonValue]) -> Completion:
        """What the model said in an answer.

        Raises:
            ValueError: there is nothing to go on, with a clause to go after "OpenAI at api.openai.com".
        """

    def _new_client(self, http: httpx2.AsyncClient, base_url: str | None) -> Any:
        return getattr(self._sdk, self.vendor.client)(
            **{self._key_argument: self._key},
            base_url=base_url,
            max_retries=self._max_retries,
            timeout=None,  # the HTTP client has one for the whole of an attempt
            http_client=http,
        )

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, JsonValue]:
        """The answer to a request for another thing than words, with the same clients, retries and errors."""
        try:
            return self._object(await self._send(path, body))
        except _RefusedError as error:
            raise error.failure from None

    async def _post(self, prompt: Prompt, mode: Mode) -> httpx2.Response:
        try:
            return await self._send(self.vendor.path, self._body(prompt, mode))
        except _RefusedError as error:
            if prompt.schema is not None and error.status in _FORM_REFUSED:
                told = payload.error_detail(error.content, self._redactor)
                named = _OF_THE_FORM.search(told) is not None
                if named or not _OF_SOMETHING_ELSE.search(told):
                    raise _FormRefusedError(error.failure, named=named) from None
            raise error.failure from None

    async def _send(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        sdk = self._sdk
        try:
            async with self._client() as client:
                response: httpx2.Response = await client.post(
                    path, cast_to=httpx2.Response, body={"model": self.model, **body}
                )
                self._key_held = True
                return response
        except sdk.APIStatusError as error:
            failure = self._status_failure(error.response)
            raise _RefusedError(failure, error.status_code, error.response.content) from None
        except sdk.APITimeoutError as error:
            attempts = 1 + int(error.request.headers.get("x-stainless-retry-count", 0))
            which = f" at the last of {attempts} attempts" if attempts > 1 else ""
            raise LLMError(f"{self._who} did not answer within {self._timeout:g} s{which}") from None
        except sdk.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(
                cause, connections.AnswerTooLargeError
            ):  # one SDK takes every error for one of these
                raise LLMAnswerError(f"{self._who} {cause}") from None
            reason = payload.shorten(self._redactor.text(str(cause or error))) or type(cause).__name__
            if isinstance(cause, httpx2.ConnectError | httpx2.ProxyError):
                raise LLMError(f"{self._who} could not be reached: {reason}") from error
            raise LLMError(f"the connection to {self._who} broke: {reason}") from error
        except connections.AnswerTooLargeError as error:
            raise LLMAnswerError(f"{self._who} {error}") from None

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        """An SDK client for one call: the one used last, whose connection is the most likely to be open."""
        loop = asyncio.get_running_loop()
        if self._slots is None or self._loop is not loop:  # a semaphore serves one event loop
            self._slots, self._loop = asyncio.Semaphore(self._max_calls), loop
        async with self._slots:
            if self._idle:
                client = self._idle.pop()
            else:
                http = connections.new_client(self._url, proxy=self._proxy, timeout=self._timeout)
                client = self._new_client(http, self._url)
            try:
                yield client
            finally:
                self._idle.append(client)

    def _completion(self, response: httpx2.Response) -> Completion:
        answer = self._object(response)
        try:
            return self._read(answer)
        except ValueError as error:
            told = payload.shorten(self._redactor.text(str(error)))
            raise LLMAnswerError(f"{self._who} {told}") from None

    def _object(self, response: httpx2.Response) -> dict[str, JsonValue]:
        try:
            answer = payload.parse(response.content)
        except ValueError as error:
            found = payload.excerpt(response.content, self._redactor)
            told = f"{self._who} gave an answer that cannot be read ({error}): {found}"
            raise LLMAnswerError(told) from None
        if not isinstance(answer, dict):
            raise LLMAnswerError(f"{self._who} gave an answer that is no JSON object")
        return answer

    def _status_failure(self, response: httpx2.Response) -> LLMError:
        status = response.status_code
        if target := connections.redirect_of(response):
            return LLMError(
                f"{self._who} redirects to {target} ({status}), which is not followed: "
                f"set {self.vendor.address} to the final address"
            )
        detail = payload.error_detail(response.content, self._redactor)
        if status == 401 or (status == 403 and not self._key_held):
            return LLMAccessError(f"{self._who} refused the key ({status}): {detail}; {self._key_hint}")
        if b"insufficient_quota" in response.content:
            return LLMAccessError(
                f"{self._who} has no quota left for this key ({status}): {detail}; see its billing"
            )
        if status == 429:
            return LLMError(f"{self._who} limits the rate of calls (429): {detail}; lower --parallel")
        return LLMError(f"{self._who} answered with status {status}: {detail}")


class _RefusedError(Exception):
    """The server answered with an error status."""

    def __init__(self, failure: LLMError, status: int, content: bytes) -> None:
        self.failure = failure
        self.status = status
        self.content = content
        super().__init__(str(failure))


class _FormRefusedError(Exception):
    """The server refused a request in a way that may be meant for its form, and is where that is `named`."""

    def __init__(self, failure: LLMError, *, named: bool) -> None:
        self.failure = failure
        self.named = named
        super().__init__(str(failure))


def with_schema(prompt: Prompt) -> Prompt:
    """The prompt with the schema in its text, if it has one, for a model that is asked in plain text."""
    if prompt.schema is None:
        return prompt
    schema = json.dumps(prompt.schema, indent=2, ensure_ascii=False)
    return replace(prompt, text=render(_JSON_ANSWER, text=prompt.text, schema=schema))


def told_by(answer: dict[str, JsonValue]) -> str:
    """What an answer that holds no message says instead, uncut."""
    return payload.explain(answer) or json.dumps(answer)


def tokens(usage: JsonValue, key: str) -> int:
    """A count of tokens out of a usage object; 0 where the server does not tell it."""
    count = usage.get(key) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
