"""Anthropic's models."""

import json
from typing import Any

import httpx2
from pydantic import JsonValue

from ci_evals.adapters import connections, payload
from ci_evals.adapters.sdk_llm import Mode, SdkLLM, Vendor, tokens
from ci_evals.ports import Completion, Prompt

DEFAULT_JUDGE_MODEL = "claude-sonnet-5-5"
DEFAULT_USER_MODEL = "claude-haiku-5-5"

MAX_TOKENS = 4096
"""The API wants a limit. A judge's reasoning takes some hundreds."""

_BROKEN_OFF = {
    "max_tokens": f"broke the answer off at the limit of {MAX_TOKENS} tokens",
    "model_context_window_exceeded": "broke the answer off: the conversation is too long for the model",
    "refusal": "gave no answer, the model refuses",
}


class AnthropicLLM(SdkLLM):
    """A model behind Anthropic's SDK. Implements the port `LLM`."""

    def __init__(
        self, model: str, key: str, base_url: str | None = None, max_retries: int = 2, timeout: float = 120
    ) -> None:
        """Imports the SDK, which takes two seconds.

        Args:
            model: Its name.
            key: The API key.
            base_url: Where the API is; without it `ANTHROPIC_BASE_URL`, or Anthropic itself.
            max_retries: How often the SDK repeats a failed call.
            timeout: Seconds to wait for an answer.

        Raises:
            UsageError: the key or the address cannot be used.
        """
        import anthropic  # noqa: PLC0415  # only the provider in use is waited for

        hint = "set --llm-key, LLM_API_KEY or ANTHROPIC_API_KEY to a valid key"
        key = connections.key_value(key, "Anthropic", hint)

        def new_client(http: httpx2.AsyncClient) -> anthropic.AsyncAnthropic:
            return anthropic.AsyncAnthropic(
                api_key=key, base_url=base_url, max_retries=max_retries, timeout=timeout, http_client=http
            )

        vendor = Vendor(
            name="Anthropic",
            sdk=anthropic,
            new_client=new_client,
            path="/v1/messages",
            modes=(Mode.JSON_SCHEMA, Mode.TEXT),
            body=lambda prompt, mode: {"model": model, **_body(prompt, mode)},
            read=_read,
            key_hint=hint,
        )
        super().__init__(model, key, vendor, timeout)


def _body(prompt: Prompt, mode: Mode) -> dict[str, Any]:
    body: dict[str, Any] = {
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": prompt.text}],
    }
    if prompt.system:
        body["system"] = prompt.system
    if mode is Mode.JSON_SCHEMA:
        body["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
    return body


def _read(answer: dict[str, JsonValue]) -> Completion:
    reason = answer.get("stop_reason")
    if isinstance(reason, str) and reason in _BROKEN_OFF:
        raise ValueError(_BROKEN_OFF[reason])
    blocks = answer.get("content")
    if not isinstance(blocks, list):
        raise ValueError(  # noqa: TRY004  # a fault of the answer, not of a caller
            f"gave an answer without content: {payload.error_detail(json.dumps(answer))}"
        )
    # Other blocks hold what the model thought, which is no part of its answer.
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    text = "".join(part for part in texts if isinstance(part, str))
    if not text.strip():
        raise ValueError("gave an empty answer")
    usage = answer.get("usage")
    return Completion(text, tokens(usage, "input_tokens"), tokens(usage, "output_tokens"))
