"""Anthropic's models."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import JsonValue

from ci_evals.adapters.models.answer_formats import AnswerFormat
from ci_evals.adapters.models.sdk_llm import SdkLLM, Vendor, explanation, tokens
from ci_evals.domain.errors import Paid
from ci_evals.ports import LEAST_SHARED, Prompt
from ci_evals.support.json_text import JsonObject
from ci_evals.support.model_answer import is_object

MAX_TOKENS = 4096
"""The API needs a limit. A judge's reasoning takes some hundreds."""

_BROKEN_OFF = {
    "max_tokens": f"cut off the answer at the limit of {MAX_TOKENS} tokens",
    "model_context_window_exceeded": "cut off the answer: the conversation is too long for the model",
    "refusal": "gave no answer: the model refuses",
}


_INPUT_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class AnthropicLLM(SdkLLM):
    """A model behind Anthropic's SDK."""

    vendor: ClassVar[Vendor] = Vendor(
        name="Anthropic",
        module="anthropic",
        client="AsyncAnthropic",
        key="ANTHROPIC_API_KEY",
        address="ANTHROPIC_BASE_URL",
        default_address="https://api.anthropic.com",
        path="/v1/messages",
        models_path="/v1/models",
        bearer="ANTHROPIC_AUTH_TOKEN",
        bearer_argument="auth_token",
    )

    formats = (AnswerFormat.JSON_SCHEMA, AnswerFormat.TEXT)

    def _body(self, prompt: Prompt, answer_format: AnswerFormat) -> JsonObject:
        body: JsonObject = {
            "max_tokens": MAX_TOKENS,
            "messages": [{"role": "user", "content": _content(prompt)}],
        }
        if prompt.system:
            body["system"] = prompt.system
        if answer_format is AnswerFormat.JSON_SCHEMA:
            body["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
        return body

    def _paid(self, usage: JsonValue) -> Paid:
        # What was kept is counted beside the other input tokens.
        read, kept, written = (tokens(usage, key) for key in _INPUT_TOKENS)
        whole = sum(count or 0 for count in (read, kept, written))
        return Paid(
            whole or None,
            tokens(usage, "output_tokens"),
            cached_input_tokens=kept or 0,
            cache_write_tokens=written or 0,
        )

    def _read(self, answer: dict[str, JsonValue]) -> str:
        reason = answer.get("stop_reason")
        if isinstance(reason, str) and reason in _BROKEN_OFF:
            raise ValueError(_BROKEN_OFF[reason])
        blocks = answer.get("content")
        if not isinstance(blocks, list):
            raise ValueError(  # noqa: TRY004  # a fault of the answer, not of a caller
                f"gave an answer without content: {explanation(answer)}"
            )
        text = _texts(blocks, "text")
        # What the model thought is no part of its answer, unless a server took its answer for that.
        if not text.strip() and is_object(thought := _texts(blocks, "thinking")):
            text = thought
        if not text.strip():
            raise ValueError("gave an empty answer")
        return text


def _texts(blocks: Sequence[JsonValue], kind: str) -> str:
    """Return the joined texts of the blocks of a kind."""
    texts = [block.get(kind) for block in blocks if isinstance(block, dict) and block.get("type") == kind]
    return "".join(text for text in texts if isinstance(text, str))


def _content(prompt: Prompt) -> str | list[JsonObject]:
    """The question, in two blocks if further prompts begin with the same one."""
    if len(prompt.system) + prompt.shared < LEAST_SHARED or not prompt.shared:
        return prompt.text
    kept, rest = prompt.text[: prompt.shared], prompt.text[prompt.shared :]
    return [
        {"type": "text", "text": kept, "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": rest},
    ]
