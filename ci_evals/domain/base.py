"""What every value of the domain is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """A frozen value that a person writes: camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False
    )


class Record(BaseModel):
    """A frozen value that the tool writes: camelCase in JSON, keys of a newer version are passed over."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False
    )


class Clean:
    """Marks a field that the tool made itself, or its user typed: nothing foreign can put a secret there.

    Names of folders, digests and the like would break if a value such as today's date were taken out of them.
    """


CleanText = Annotated[str, Clean()]

NonBlank = Annotated[str, StringConstraints(pattern=r"\S")]
"""A string with at least one visible character."""

Percent = float
"""A score in points, 0 to 100."""
