"""An agent's answer in our own words, as functions and programs give it: JSON to a `Reply`. Pure."""

import json

from pydantic import Field, JsonValue, ValidationError, field_validator

from ci_evals.adapters.transport.payload import MAX_ANSWER_MB
from ci_evals.domain.base import Amount, Model
from ci_evals.domain.transcript import Integration, Reply


class _Integration(Model):
    code: str
    status: int | None = None
    type: str | None = None
    error: str | None = None


class PlainReply(Model):
    """What an agent may tell of one reply. What it leaves out is unknown, and no evidence of anything."""

    text: str
    workflows: tuple[str, ...] | None = None
    params: dict[str, JsonValue] | None = None
    rules: tuple[str, ...] | None = None
    integrations: tuple[_Integration, ...] | None = None
    escalated: bool | None = Field(None, description="Whether the agent hands over to a person.")
    error: str | bool | None = Field(None, description="What went wrong, or whether; false or null: nothing.")
    input_tokens: Amount | None = None
    output_tokens: Amount | None = None
    trace: JsonValue = None

    @field_validator("integrations", mode="before")
    @classmethod
    def _names_too(cls, value: object) -> object:
        """A bare name is an integration without a status."""
        if not isinstance(value, list | tuple):
            return value
        return [{"code": item} if isinstance(item, str) else item for item in value]


KEYS = tuple(info.alias or name for name, info in PlainReply.model_fields.items())


def read(value: JsonValue, seconds: float, *, keep_raw: bool = False) -> Reply:
    """The reply that an agent gave: a text, or an object with the keys of `PlainReply`.

    Args:
        value: Clean JSON (see `payload.clean`).
        seconds: How long the agent took.
        keep_raw: Whether the reply keeps `value` as it came.

    Raises:
        ValueError: it is no reply, with a clause to go after "the agent's answer". It quotes the answer, at
            any length: secrets must go before it is cut.
    """
    try:
        plain = PlainReply.model_validate({"text": value} if isinstance(value, str) else value)
    except ValidationError as error:
        raise ValueError(_fault(value, error)) from None
    if len(plain.text) > MAX_ANSWER_MB * 1_000_000:
        raise ValueError(f"is longer than {MAX_ANSWER_MB} MB")
    error_told = "error" in plain.model_fields_set
    return Reply(
        agent=plain.text,
        latency_seconds=seconds,
        workflows=plain.workflows,
        handed_over=plain.escalated,
        params=plain.params,
        rules=plain.rules,
        integrations=None
        if plain.integrations is None
        else tuple(Integration(**call.model_dump()) for call in plain.integrations),
        error_response=bool(plain.error) if error_told else None,
        error_detail=plain.error if isinstance(plain.error, str) and plain.error else None,
        input_tokens=plain.input_tokens,
        output_tokens=plain.output_tokens,
        trace=plain.trace,
        raw=value if keep_raw else None,
    )


def _fault(value: JsonValue, error: ValidationError) -> str:
    """The first thing that is wrong, in words."""
    if not isinstance(value, dict):
        return f"is neither a text nor an object: {json.dumps(value, ensure_ascii=False)}"
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "missing":
            return f"has no {place!r}"
        case "extra_forbidden":
            return f"has a key {place!r}, which is none of {', '.join(KEYS)}"
        case kind:
            wanted = _WANTED.get(kind)
            why = f"it must be {wanted}" if wanted else first["msg"].lower()
            return f"has a {place!r} that cannot be read: {why}"


_WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "a name, or an object with a 'code'",
    "string_type": "a text",
    "tuple_type": "a list",
}
