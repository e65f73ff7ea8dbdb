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
        """Use `api`, which has the embedding model's name, for requests."""
        self.model = api.model
        self._api = api

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embed all texts in one request."""
        body = {"input": [whole(text) for text in texts], "encoding_format": "float"}
        answer = await self._api.post("/embeddings", body)
        vectors = _vectors(answer)
        if len(vectors) != len(texts):
            counts = f"gave {len(vectors)} readable vectors for {len(texts)} texts"
            raise LLMAnswerError(f"{self._api.vendor.name} {counts}; is {self.model} an embedding model?")
        return Embeddings(tuple(vectors), tokens(answer.get("usage"), "prompt_tokens"))

    async def check(self) -> None:
        """Check the key at no cost."""
        await self._api.check()

    def waits(self) -> tuple[str, Waiting | None]:
        """Return the name of the service and the current wait for it."""
        return self._api.waits()

    def note(self) -> str | None:
        """Return a sentence on rate limits of the provider; None if there were none."""
        return self._api.note()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._api.aclose()


def _vectors(answer: dict[str, JsonValue]) -> list[tuple[float, ...]]:
    """Return the readable vectors of an answer in the order of the texts."""
    data = answer.get("data")
    vectors: list[tuple[int, tuple[float, ...]]] = []
    for position, item in enumerate(data if isinstance(data, list) else []):
        if not isinstance(item, dict):
            continue
        index, numbers = item.get("index", position), item.get("embedding")
        if type(index) is int and isinstance(numbers, list):
            vector = tuple(number for value in numbers if (number := _number(value)) is not None)
            vectors += [(index, vector)] if len(vector) == len(numbers) else []
    by_index = dict(vectors)
    # A missing or repeated index would assign a vector to another text.
    return [by_index[index] for index in range(len(vectors)) if index in by_index]


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
