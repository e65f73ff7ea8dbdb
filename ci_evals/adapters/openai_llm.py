"""OpenAI's models, and every server that is compatible with its chat completions."""

from typing import Any, ClassVar

from pydantic import JsonValue

from ci_evals.adapters.sdk_llm import Mode, SdkLLM, Vendor, tokens, told_by
from ci_evals.ports import Completion, Prompt

DEFAULT_JUDGE_MODEL = "gpt-6.1-terra"
DEFAULT_USER_MODEL = "gpt-6-luna"

_BROKEN_OFF = {
    "length": "broke the answer off at its limit of tokens",
    "content_filter": "held the answer back (content filter)",
}
_THOUGHT_BEGINS, _THOUGHT_ENDS = "<think>", "</think>"


class OpenAILLM(SdkLLM):
    """A model behind OpenAI's SDK."""

    vendor: ClassVar[Vendor] = Vendor(
        name="OpenAI",
        module="openai",
        client="AsyncOpenAI",
        variables="OPENAI",
        path="/chat/completions",
        modes=(Mode.JSON_SCHEMA, Mode.JSON_OBJECT, Mode.TEXT),
    )

    def _body(self, prompt: Prompt, mode: Mode) -> dict[str, Any]:
        # No temperature, which newer models refuse; no limit of tokens, which compatible servers name in
        # their own ways.
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

    def _read(self, answer: dict[str, JsonValue]) -> Completion:
        match answer:
            case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal.strip():
                raise ValueError(f"gave no answer, the model refuses: {refusal}")
            case {"choices": [{"finish_reason": str(reason)}, *_]} if reason in _BROKEN_OFF:
                raise ValueError(_BROKEN_OFF[reason])
            case {"choices": [{"message": {"content": content}}, *_]}:
                text = _without_thought(_text(content))
            case _:
                raise ValueError(f"gave an answer without a message: {told_by(answer)}")
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


def _without_thought(text: str) -> str:
    """`text` without the block that it begins with where a server leaves a model's thinking in its answer."""
    begun = text.lstrip()
    if not begun.startswith(_THOUGHT_BEGINS):
        return text
    _, ended, rest = begun.partition(_THOUGHT_ENDS)
    if not ended:
        raise ValueError("broke the answer off while the model was thinking")
    return rest.lstrip()
