"""The grounds of a judge's answer: what it must rest on to count, and reasons that are none."""

from collections.abc import Container, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from ci_evals.domain.verdict import Quote, RestsOn

NO_WORDS = "the judge gave a reason without words"
NOTHING = (
    "the judge passed it on no grounds: it quoted nothing, and named no turns in which it looked for "
    "what is absent"
)
CONTRADICTION = 'the judge contradicted itself: its verdict is {verdict!r}, and "met" is {met}'

SCHEMA: dict[str, Any] = {
    "rests_on": {"type": "string", "enum": ["quotes", "absence"]},
    "looked_at": {"type": "array", "items": {"type": "integer"}},
}
"""The properties of an answer in which a judge names its grounds."""


class Stated(BaseModel):
    """The grounds that a judge names."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rests_on: Literal["quotes", "absence"]
    looked_at: list[int]
    """The turns in which it looked for what is absent."""


class Grounds(NamedTuple):
    """The grounds of an answer, checked against the conversation."""

    rests_on: RestsOn | None
    """None where it rests on nothing."""
    turns: tuple[int, ...]
    quotes: tuple[Quote, ...]


def checked(
    stated: Stated, quotes: Sequence[Quote], named: Sequence[int], turns: Container[int]
) -> Grounds | str:
    """The grounds of an answer, or why the answer is void.

    Args:
        stated: What the judge names.
        quotes: Its quotes that stand in the conversation.
        named: The turns that its evidence names.
        turns: Those that the conversation has.
    """
    if stated.rests_on == "absence":
        for number in stated.looked_at:
            if number not in turns:
                return f"the judge looked at turn {number}, which does not exist"
        if stated.looked_at:
            return Grounds("absence", tuple(sorted({*named, *stated.looked_at})), tuple(quotes))
    return Grounds("quotes" if quotes else None, tuple(sorted({*named})), tuple(quotes))
