"""What tells one vendor's SDK from another, and the forms in which models are asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How the provider is asked for an answer of a certain form."""

    JSON_SCHEMA = "json_schema"
    """The schema goes along, and the provider holds the model to it."""
    JSON_OBJECT = "json_object"
    """The provider sees to JSON; the schema stands in the prompt."""
    TEXT = "text"
    """The schema stands in the prompt, and nothing else is asked of the provider."""


@dataclass(frozen=True)
class Vendor:
    """What tells one SDK from another."""

    name: str
    """As messages call it."""
    module: str
    """The SDK's module, which takes a second or two to import."""
    client: str
    """The class of its asynchronous client."""
    key: str
    """The variable that holds the API key."""
    address: str
    """The variable that holds the address of the API."""
    default_address: str | None
    """The API's own, if it is the same for all."""
    path: str
    models_path: str
    """Where the models are listed: a request that costs nothing."""
    modes: tuple[Mode, ...]
    """The forms of asking for JSON that the provider knows, the strictest first."""
    bearer: str | None = None
    """The variable that may hold a bearer token in place of the key."""
    bearer_argument: str = "api_key"
    """The client's argument for it."""
    below: str = ""
    """Where the API is below the address that the variable holds."""

    def url(self, base_url: str | None, environ: Mapping[str, str]) -> str:
        """Where the SDK finds the API, without asking it, since its import takes seconds.

        A variable that a workflow sets to nothing names no address.
        """
        named = environ.get(self.address)
        return base_url or (f"{named.rstrip('/')}{self.below}" if named else self.default_address or "")
