"""Embedding models: OpenAI's and those of compatible servers, and models that run on this machine."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.models.sdk_llm import SdkLLM, tokens
from ci_evals.domain.errors import LLMAnswerError, UsageError
from ci_evals.domain.prices import LOCAL
from ci_evals.ports import Embeddings
from ci_evals.support.documentation import extra
from ci_evals.support.text import whole
from ci_evals.threads import in_thread

_ON_THE_HUB = re.compile(r"\w[\w.-]*/[\w.-]+")


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


class LocalEmbedder:
    """A model out of a folder, or of the Hugging Face Hub by its name. Implements the port `Embedder`."""

    def __init__(self, model: str) -> None:
        """Load `local:FOLDER` or `local:NAME`, which takes a second, and a download the first time.

        Raise `UsageError` if the extra is not installed, or there is no such model.
        """
        self.model = model
        self._model = _loaded(model.removeprefix(LOCAL))

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embed texts in a thread. Tokens are not counted, since they cost nothing."""
        vectors = await in_thread(self._encode, [whole(text) for text in texts])
        return Embeddings(tuple(tuple(float(number) for number in vector) for vector in vectors), 0)

    def _encode(self, texts: list[str]) -> Any:
        try:
            return self._model.encode(texts, max_length=None, use_multiprocessing=False)
        except Exception as error:
            raise LLMAnswerError(f"the local model {self.model} failed: {error}") from error


def _loaded(name: str) -> Any:
    try:
        from model2vec import StaticModel  # noqa: PLC0415  # an extra, and half a second
    except ImportError as error:
        raise UsageError(
            f"`embedding_model={LOCAL}{name}`: local models need an extra: {extra('local')}"
        ) from error
    folder = Path(name)
    if not folder.exists() and not _ON_THE_HUB.fullmatch(name):
        raise UsageError(
            f"`embedding_model={LOCAL}{name}`: there is no such folder; models of the Hugging Face Hub have "
            "names like minishlab/potion-base-8M"
        )
    try:
        return StaticModel.from_pretrained(folder if folder.exists() else name, force_download=False)
    except Exception as error:
        where = "in that folder" if folder.exists() else "of that name, here or on the Hugging Face Hub"
        reason = " ".join(str(error).split())
        raise UsageError(
            f"`embedding_model={LOCAL}{name}`: there is no model for model2vec {where}: {reason}"
        ) from error
