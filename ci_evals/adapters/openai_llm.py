"""OpenAI's models, and every server that is compatible with its chat completions."""

import json
from typing import Any

import httpx2
from pydantic import JsonValue

from ci_evals.adapters import connections, payload
from ci_evals.adapters.sdk_llm import Mode, SdkLLM, Vendor, tokens
from ci_evals.ports import Completion, Prompt

DEFAULT_JUDGE_MODEL = "gpt-6.1-terra"
DEFAULT_USER_MODEL = "gpt-6-luna"

_BROKEN_OFF = {
    "length": "broke the answer off at its limit of tokens",
    "content_filter": "held the answer back (content filter)",
}


class OpenAILLM(SdkLLM):
    """A model behind OpenAI's SDK. Implements the port `LLM`."""

    def __init__(
        self, model: str, key: str, base_url: str | None = None, max_retries: int = 2, timeout: float = 120
    ) -> None:
        """Imports the SDK, which takes a second.

        Args:
            model: Its name.
            key: The API key.
            base_url: Where the API is; without it `OPENAI_BASE_URL`, or OpenAI itself.
            max_retries: How often the SDK repeats a failed call.
            timeout: Seconds to wait for an answer.

        Raises:
            UsageError: the key or the address cannot be used.
        """
        import openai  # noqa: PLC0415  # only the provider in use is waited for

        hint = "set --llm-key, LLM_API_KEY or OPENAI_API_KEY to a valid key"
        key = connections.key_value(key, "OpenAI", hint)

        def new_client(http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
            return openai.AsyncOpenAI(
                api_key=key, base_url=base_url, max_retries=max_retries, timeout=timeout, http_client=http
            )

        vendor = Vendor(
            name="OpenAI",
            sdk=openai,
            new_client=new_client,
            path="/chat/completions",
            modes=(Mode.JSON_SCHEMA, Mode.JSON_OBJECT, Mode.TEXT),
            body=lambda prompt, mode: {"model": model, **_body(prompt, mode)},
            read=_read,
            key_hint=hint,
        )
        super().__init__(model, key, vendor, timeout)


def _body(prompt: Prompt, mode: Mode) -> dict[str, Any]:
    # No temperature, which newer models refuse; no limit of tokens, which compatible servers name in their
    # own ways.
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    body: dict[str, Any] = {"messages": [*messages, {"role": "user", "content": prompt.text}]}
    match mode:
        case Mode.JSON_SCHEMA:
            schema = {"name": prompt.schema_name, "schema": prompt.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        case Mode.JSON_OBJECT:
            body["response_format"] = {"type": "json_object"}
        case Mode.TEXT:
            pass
    return body


def _read(answer: dict[str, JsonValue]) -> Completion:
    match answer:
        case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal.strip():
            raise ValueError(f"gave no answer, the model refuses: {payload.shorten(refusal)}")
        case {"choices": [{"finish_reason": str(reason)}, *_]} if reason in _BROKEN_OFF:
            raise ValueError(_BROKEN_OFF[reason])
        case {"choices": [{"message": {"content": content}}, *_]}:
            text = _text(content)
        case _:
            raise ValueError(f"gave an answer without a message: {payload.error_detail(json.dumps(answer))}")
    if not text.strip():
        raise ValueError("gave an empty answer")
    usage = answer.get("usage")
    return Completion(text, tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens"))


def _text(content: JsonValue) -> str:
    """A message's content: a text, or a list of parts."""
    match content:
        case str():
            return content
        case list():
            return "".join(_text(part) for part in content)
        case {"text": str(text)}:
            return text
        case _:
            return ""
