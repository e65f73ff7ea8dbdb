"""The base of models behind a vendor's SDK: asks in the strictest format that a server knows."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import JsonValue

from ci_evals.adapters.models.answer_formats import AnswerFormat, may_mean_format, names_format, with_schema
from ci_evals.adapters.models.sdk_api import RefusedError, SdkApi
from ci_evals.adapters.transport.network import Answer
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAnswerError, Paid
from ci_evals.ports import Completion, Prompt
from ci_evals.support import payload
from ci_evals.support.text import whole

_MODEL_KEYS = frozenset({"usage", "choices", "content"})
"""Keys of an answer that a model gave and that is paid for, usable or not."""


class SdkLLM(SdkApi, ABC):
    """A model behind a vendor's SDK. Implements the port `LLM`.

    If a server refuses an answer format, the next one is tried, since compatible servers often support only
    some. If the refusal names the format, this object never requests that format again; any other refusal may
    be about one question and has no effect on later ones.
    """

    formats: ClassVar[tuple[AnswerFormat, ...]]
    """From the strictest to text."""
    _refused_formats = 0
    """Number of formats that the server has refused for good."""

    @classmethod
    def for_environment(cls, environ: Mapping[str, str]) -> "type[SdkLLM]":
        """Return the class for the address that the environment names."""
        del environ
        return cls

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, in the strictest format that the server has not refused for good."""
        prompt = replace(prompt, system=whole(prompt.system), text=whole(prompt.text))
        known = self._refused_formats
        formats = self.formats[known:] if prompt.schema is not None else (AnswerFormat.TEXT,)
        refused = 0
        for index, answer_format in enumerate(formats):
            fitted = prompt if answer_format is AnswerFormat.JSON_SCHEMA else with_schema(prompt)
            try:
                answer = await self._send(self.vendor.path, self._body(fitted, answer_format))
            except RefusedError as error:
                # If plain text is refused as well, the format was not the problem: nothing is
                # remembered, and the last error is the one to show.
                if answer_format is AnswerFormat.TEXT or not may_mean_format(error.status, error.detail):
                    raise error.failure from None
                if refused == index and names_format(error.status, error.detail):
                    refused += 1
            else:
                self._refused_formats = max(self._refused_formats, known + refused)
                return self._completion(answer)
        raise AssertionError("plain text is answered or raises")

    @abstractmethod
    def _body(self, prompt: Prompt, answer_format: AnswerFormat) -> dict[str, Any]:
        """Return the body of a request, without the model's name."""

    @abstractmethod
    def _paid(self, usage: JsonValue) -> Paid:
        """Return the tokens that an answer reports."""

    @abstractmethod
    def _read(self, answer: dict[str, JsonValue]) -> str:
        """Return the text in an answer, or raise `ValueError` to go after "OpenAI at api.openai.com …"."""

    def _completion(self, answer: Answer) -> Completion:
        completed = self._object(answer)
        paid = self._paid(completed.get("usage"))
        try:
            return Completion.of(self._read(completed), paid)
        except ValueError as error:
            reason = payload.shorten(self._redactor.text(str(error)))
            by_model = _MODEL_KEYS & completed.keys()
            text = self._redactor.text(json.dumps(completed, ensure_ascii=False))
            raise LLMAnswerError(f"{self._who} {reason}", paid if by_model else None, text) from None


def explanation(answer: dict[str, JsonValue]) -> str:
    """Return the text of an answer that holds no message, unshortened."""
    return payload.explain(answer) or json.dumps(answer)


def tokens(usage: JsonValue, key: str) -> int | None:
    """Return a token count of a usage object; None if it is missing or implausible.

    Servers that do not count report 0.
    """
    return token_count(payload.member(usage, key)) or None
