"""OpenAI's embedding models, and those of compatible servers."""

from collections.abc import Sequence

from pydantic import JsonValue

from ci_evals.adapters.models.sdk_llm import SdkLLM, tokens
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.errors import LLMAnswerError
from ci_evals.ports import Embeddings
from ci_evals.support.text import whole

DEFAULT_MODEL = "text-embedding-3-small"


class OpenAIEmbedder:
    """An embedding model behind OpenAI's SDK. Implements the port `Embedder`."""

    def __init__(self, api: SdkLLM) -> None:
        """`api` has the embedding model's name; it brings clients, resends and errors in words."""
        self.model = api.model
        self._api = api

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """All texts in one request."""
        body = {"input": [whole(text) for text in texts], "encoding_format": "float"}
        answer = await self._api.post("/embeddings", body)
        vectors = _vectors(answer)
        if len(vectors) != len(texts):
            said = f"gave {len(vectors)} readable vectors for {len(texts)} texts"
            raise LLMAnswerError(f"{self._api.vendor.name} {said}; is {self.model} an embedding model?")
        return Embeddings(tuple(vectors), tokens(answer.get("usage"), "prompt_tokens"))

    async def check(self) -> None:
        """Learns for nothing whether the key is good; as of `SdkLLM`."""
        await self._api.check()

    def waits(self) -> tuple[str, Waiting | None]:
        """Who is asked, and how long it is waited for now."""
        return self._api.waits()

    def note(self) -> str | None:
        """What a person should know of limits that the provider set to the rate; None if it set none."""
        return self._api.note()

    async def aclose(self) -> None:
        """Closes every connection."""
        await self._api.aclose()


def _vectors(answer: dict[str, JsonValue]) -> list[tuple[float, ...]]:
    """The vectors of an answer in the order of the texts, without what is none."""
    data = answer.get("data")
    found: list[tuple[int, tuple[float, ...]]] = []
    for place, item in enumerate(data if isinstance(data, list) else []):
        if not isinstance(item, dict):
            continue
        index, numbers = item.get("index", place), item.get("embedding")
        if type(index) is int and isinstance(numbers, list):
            vector = tuple(number for told in numbers if (number := _number(told)) is not None)
            found += [(index, vector)] if len(vector) == len(numbers) else []
    by_index = dict(found)
    # An index that is given twice, or is none, would put a vector to a text that is not its own.
    return [by_index[place] for place in range(len(found)) if place in by_index]


def _number(told: JsonValue) -> float | None:
    """A part of a vector, or None where it is none."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    try:
        return float(told)
    except OverflowError:  # a whole number of hundreds of digits
        return None
