"""OpenAI's models, and every server that is compatible with its chat completions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import JsonValue

from ci_evals.adapters.models.answer_formats import AnswerFormat
from ci_evals.adapters.models.sdk_llm import SdkLLM, Vendor, explanation, tokens
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import Paid, UsageError
from ci_evals.ports import Prompt
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject
from ci_evals.support.model_answer import is_object

_BROKEN_OFF = {
    "length": "cut off the answer at its limit of tokens",
    "content_filter": "withheld the answer (content filter)",
}
_THOUGHT_FIELDS = ("reasoning_content", "reasoning")
_THOUGHT_BEGINS, _THOUGHT_ENDS = "<think>", "</think>"


class OpenAILLM(SdkLLM):
    """A model behind OpenAI's SDK."""

    vendor: ClassVar[Vendor] = Vendor(
        name="OpenAI",
        module="openai",
        client="AsyncOpenAI",
        key="OPENAI_API_KEY",
        address="OPENAI_BASE_URL",
        default_address="https://api.openai.com/v1",
        path="/chat/completions",
        models_path="/models",
    )

    formats = (AnswerFormat.JSON_SCHEMA, AnswerFormat.JSON_OBJECT, AnswerFormat.TEXT)

    @classmethod
    def for_environment(cls, environ: Mapping[str, str]) -> type[SdkLLM]:
        """Return the class for a resource at Azure if the SDK's variables name that and no other address."""
        at_azure = environ.get(AzureOpenAILLM.vendor.address) and not environ.get(cls.vendor.address)
        return AzureOpenAILLM if at_azure else cls

    def _body(self, prompt: Prompt, answer_format: AnswerFormat) -> JsonObject:
        # No temperature, which newer models refuse; no limit of tokens, which compatible servers name in
        # their own ways.
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        body: JsonObject = {"messages": [*messages, {"role": "user", "content": prompt.text}]}
        match answer_format:
            case AnswerFormat.JSON_SCHEMA:
                schema = {"name": prompt.schema_name, "schema": prompt.schema, "strict": True}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            case AnswerFormat.JSON_OBJECT:
                body["response_format"] = {"type": "json_object"}
            case AnswerFormat.TEXT:
                pass
        return body

    def _paid(self, usage: JsonValue) -> Paid:
        read, written = tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens")
        cached = payload.member(payload.member(usage, "prompt_tokens_details"), "cached_tokens")
        count = 0 if cached is None else token_count(cached)
        if count is None or count > (read or 0):
            return Paid(None, written)  # of what was read, no more can have been in the provider's cache
        return Paid(read, written, cached_input_tokens=count)

    def _read(self, answer: dict[str, JsonValue]) -> str:
        match answer:
            case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal.strip():
                raise ValueError(f"gave no answer: the model refuses: {refusal}")
            case {"choices": [{"finish_reason": str(reason)}, *_]} if reason in _BROKEN_OFF:
                raise ValueError(_BROKEN_OFF[reason])
            case {"choices": [{"message": {"content": content} as message}, *_]}:
                text = _without_thought(payload.joined(content, "text"))
                if not text.strip():
                    text = _answer_as_thought(message)
            case _:
                raise ValueError(f"gave an answer without a message: {explanation(answer)}")
        if not text.strip():
            raise ValueError("gave an empty answer")
        return text


class AzureOpenAILLM(OpenAILLM):
    """A model deployed at Azure OpenAI, behind its classic API: the model's name is the deployment's.

    Azure's newer API is OpenAI's own at another address; `OpenAILLM` serves it.
    """

    vendor: ClassVar[Vendor] = replace(
        OpenAILLM.vendor,
        name="Azure OpenAI",
        client="AsyncAzureOpenAI",
        key="AZURE_OPENAI_API_KEY",
        address="AZURE_OPENAI_ENDPOINT",
        default_address=None,
        below="/openai",
        bearer="AZURE_OPENAI_AD_TOKEN",
        bearer_argument="azure_ad_token",
    )

    def __init__(
        self,
        model: str,
        key: str | None,
        base_url: str | None = None,
        *,
        environ: Mapping[str, str],
        **options: Any,
    ) -> None:
        """Create the model as `SdkLLM` does. A `base_url` ends in `/openai`."""
        if not environ.get("OPENAI_API_VERSION"):
            raise UsageError(
                "AZURE_OPENAI_ENDPOINT is set, and OPENAI_API_VERSION is not: set it to a version of Azure's "
                "API; or set OPENAI_BASE_URL to its v1 API, https://NAME.openai.azure.com/openai/v1/"
            )
        endpoint = environ.get(self.vendor.address, "")
        if not base_url and "/openai" in urlsplit(endpoint).path:
            raise UsageError(
                f"AZURE_OPENAI_ENDPOINT is the address of a resource, which ends before '/openai', and not "
                f"{endpoint!r}; for the v1 API set OPENAI_BASE_URL to it instead"
            )
        super().__init__(model, key, base_url, environ=environ, **options)


def _answer_as_thought(message: JsonValue) -> str:
    """Return an answer in JSON that a server took for the model's thinking; thoughts are in words."""
    for name in _THOUGHT_FIELDS:
        text = payload.member(message, name)
        if isinstance(text, str) and is_object(text):
            return text
    return ""


def _without_thought(text: str) -> str:
    """Remove the model's thinking, which some servers leave at the start of an answer."""
    stripped = text.lstrip()
    if not stripped.startswith(_THOUGHT_BEGINS):
        return text
    _, end, rest = stripped.partition(_THOUGHT_ENDS)
    if not end:
        raise ValueError("cut off the answer while the model was thinking")
    return rest.lstrip()
