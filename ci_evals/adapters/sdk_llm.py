"""What the models behind a vendor's Python SDK have in common: clients, falling back, and errors in words.

Calls go through the SDK's documented low-level `post`: its retries, headers and variables serve as they are,
while the typed methods would cost twice the processor time, warn on the console about ageing models, and
stumble over answers of compatible servers that differ in a field which is not read here.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from types import ModuleType
from typing import Any

import httpx2
from pydantic import JsonValue

from ci_evals.adapters import connections, payload
from ci_evals.domain.errors import LLMAccessError, LLMError, UsageError
from ci_evals.ports import Completion, Prompt
from ci_evals.redaction import Redactor
from ci_evals.templates import render

_JSON_ANSWER = "adapters/prompts/json_answer.md.j2"
_FORM_REFUSED = frozenset({400, 404, 422, 501})


class Mode(StrEnum):
    """How the provider is asked for an answer of a certain form."""

    JSON_SCHEMA = "json_schema"
    """The schema goes along, and the provider holds the model to it."""
    JSON_OBJECT = "json_object"
    """The provider sees to JSON; the schema stands in the prompt."""
    TEXT = "text"
    """The schema stands in the prompt, and nothing else is asked of the provider."""


Read = Callable[[dict[str, JsonValue]], Completion]
"""What a model said in an answer. Raises `ValueError` where there is nothing to go on, with a clause to go
after "OpenAI at api.openai.com"."""


@dataclass(frozen=True)
class Vendor:
    """What tells one SDK from another."""

    name: str
    """As messages call it."""
    sdk: ModuleType
    new_client: Callable[[httpx2.AsyncClient], Any]
    """A client of the SDK on top of an HTTP client."""
    path: str
    modes: tuple[Mode, ...]
    """The forms of asking for JSON that the provider knows, the strictest first."""
    body: Callable[[Prompt, Mode], dict[str, Any]]
    """The body of a request that asks a prompt in one of the forms."""
    read: Read
    key_hint: str
    """Where a key comes from."""


class SdkLLM:
    """A model behind a vendor's SDK. Implements the port `LLM`.

    A server that refuses a form of asking is asked in the next one, for the rest of this object's life:
    servers that are compatible with a provider often know only some of its forms.
    """

    def __init__(self, model: str, key: str, vendor: Vendor, timeout: float) -> None:
        self.model = model
        self._vendor = vendor
        self._timeout = timeout
        self._redactor = Redactor(keys=[key])
        # Made only to learn which address the SDK takes: it looks at its own variables.
        try:
            self._url = str(vendor.new_client(connections.new_client("http:")).base_url)
        except httpx2.InvalidURL as error:
            raise UsageError(f"the base URL for {vendor.name} cannot be used: {error}") from None
        if not self._url.startswith(("http://", "https://")):
            raise UsageError(f"the base URL {self._url!r} for {vendor.name} is no http(s):// address")
        self._who = f"{vendor.name} at {connections.host_of(self._url)}"
        self._proxy = connections.proxy_for(self._url)
        self._idle: list[Any] = []
        self._refused = 0
        """How many of the vendor's forms of asking the server has refused."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Asks once, in the strictest form that the server has not refused yet."""
        system, text = payload.clean_text(prompt.system), payload.clean_text(prompt.text)
        prompt = replace(prompt, system=system, text=text)
        if prompt.schema is None:
            return self._read(await self._post(prompt, Mode.TEXT))
        modes = self._vendor.modes
        for place in range(self._refused, len(modes)):
            try:
                response = await self._post(_fitted(prompt, modes[place]), modes[place])
            except _FormRefusedError as error:
                # If the plainest form is refused as well, the form was not the trouble: nothing is
                # remembered then, and the last error is the one to show.
                if place == len(modes) - 1:
                    raise error.failure from None
            else:
                self._refused = max(self._refused, place)
                completion = self._read(response)
                return replace(completion, text=payload.unfenced(completion.text))
        raise AssertionError("the last form returns or raises")

    async def aclose(self) -> None:
        """Closes every connection. The object can be used again afterwards."""
        while self._idle:
            await self._idle.pop().close()

    async def _post(self, prompt: Prompt, mode: Mode) -> httpx2.Response:
        sdk = self._vendor.sdk
        try:
            async with self._client() as client:
                response: httpx2.Response = await client.post(
                    self._vendor.path, cast_to=httpx2.Response, body=self._vendor.body(prompt, mode)
                )
                return response
        except sdk.APIStatusError as error:
            failure = self._status_failure(error.response)
            if prompt.schema is not None and error.status_code in _FORM_REFUSED:
                raise _FormRefusedError(failure) from None
            raise failure from None
        except sdk.APITimeoutError:
            raise LLMError(f"{self._who} did not answer within {self._timeout:g} s") from None
        except sdk.APIConnectionError as error:
            reason = self._redactor.text(str(error.__cause__ or error))
            raise LLMError(f"{self._who} could not be reached: {payload.shorten(reason)}") from error

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        """An SDK client for one call: the one used last, whose connection is the most likely to be open."""
        if self._idle:
            client = self._idle.pop()
        else:
            http = connections.new_client(self._url, proxy=self._proxy, timeout=self._timeout)
            client = self._vendor.new_client(http)
        try:
            yield client
        finally:
            self._idle.append(client)

    def _read(self, response: httpx2.Response) -> Completion:
        try:
            answer = payload.parse(response.content)
        except ValueError as error:
            found = payload.excerpt(self._text(response))
            raise LLMError(f"{self._who} gave an answer that cannot be read ({error}): {found}") from None
        if not isinstance(answer, dict):
            raise LLMError(f"{self._who} gave an answer that is no JSON object")
        try:
            return self._vendor.read(answer)
        except ValueError as error:
            raise LLMError(f"{self._who} {self._redactor.text(str(error))}") from None

    def _status_failure(self, response: httpx2.Response) -> LLMError:
        status, text = response.status_code, self._text(response)
        detail = payload.error_detail(text)
        if status in (401, 403):
            return LLMAccessError(
                f"{self._who} refused the key ({status}): {detail}; {self._vendor.key_hint}"
            )
        if "insufficient_quota" in text:
            return LLMError(
                f"{self._who} has no quota left for this key ({status}): {detail}; see its billing"
            )
        if status == 429:
            return LLMError(f"{self._who} limits the rate of calls (429): {detail}; lower --parallel")
        return LLMError(f"{self._who} answered with status {status}: {detail}")

    def _text(self, response: httpx2.Response) -> str:
        """The body without the key. It goes before anything is cut, or half of it might stay."""
        return self._redactor.text(response.content.decode(errors="replace"))


class _FormRefusedError(Exception):
    """The server refused a request in a way that may be meant for its form."""

    def __init__(self, failure: LLMError) -> None:
        self.failure = failure
        super().__init__(str(failure))


def _fitted(prompt: Prompt, mode: Mode) -> Prompt:
    """The prompt with the schema in its text, where it does not go along by itself."""
    if mode is Mode.JSON_SCHEMA:
        return prompt
    schema = json.dumps(prompt.schema, indent=2, ensure_ascii=False)
    return replace(prompt, text=render(_JSON_ANSWER, text=prompt.text, schema=schema))


def tokens(usage: JsonValue, key: str) -> int:
    """A count of tokens out of a usage object; 0 where the server does not tell it."""
    count = usage.get(key) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
