"""The fields that all evaluations have, and types of their fields."""

from typing import Annotated, ClassVar, Literal

import regex
from pydantic import AfterValidator, Field

from ci_evals.domain.base import Model, NonBlank


def _compiles(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles), Field(min_length=1)]
TurnNumber = Annotated[int, Field(ge=1)]
TurnChoice = TurnNumber | Literal["last", "any"]


def _is_a_json_path(text: str) -> str:
    from ci_evals.support.json_path import JsonPath  # noqa: PLC0415  # 0.1 s, for those who need it

    JsonPath(text)
    return text


JsonPathText = Annotated[str, AfterValidator(_is_a_json_path)]


class Criterion(Model):
    """The fields that all evaluations have."""

    own_prompts: ClassVar[tuple[str, ...]] = ()
    """Templates of a question that only criteria of this kind ask. A test's digest changes with them."""

    criterion: NonBlank = Field(description="What must be true of the conversation, in plain language.")
    weight: float = Field(
        1.0, ge=0, le=1_000_000, description="Share of the test's score; higher counts more."
    )
    category: NonBlank | None = Field(None, description="A name to group results by, such as `tone`.")
    aui_logic: tuple[NonBlank, ...] = Field(
        (), alias="aui_logic", description="Ids of the AUI logic rules behind this criterion."
    )

    @property
    def strict_kind(self) -> str | None:
        """The name of the strict check; None if a judge decides."""
        return None

    @property
    def claims_kind(self) -> Literal["backed"] | None:
        """The requirement on the agent's claims; None if the evaluation is not about them."""
        return None
