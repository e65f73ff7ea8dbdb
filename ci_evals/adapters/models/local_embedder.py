"""An embedding model that runs on this machine: static embeddings by model2vec, an extra of the package."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ci_evals.domain.errors import LLMAnswerError, UsageError
from ci_evals.domain.prices import LOCAL
from ci_evals.ports import Embeddings
from ci_evals.support.text import whole
from ci_evals.threads import in_thread

_ON_THE_HUB = re.compile(r"\w[\w.-]*/[\w.-]+")


class LocalEmbedder:
    """A model out of a folder, or of the Hugging Face Hub by its name. Implements the port `Embedder`."""

    def __init__(self, model: str) -> None:
        """Load the model, which takes a second, and a download if it comes from the Hub for the first time.

        Args:
            model: `local:FOLDER` or `local:NAME`.

        Raises:
            UsageError: the extra is not installed, or there is no such model.
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

    async def aclose(self) -> None:
        """Nothing is open."""


def _loaded(name: str) -> Any:
    try:
        from model2vec import StaticModel  # noqa: PLC0415  # an extra, and half a second
    except ImportError as error:
        raise UsageError(
            f"--embedding-model={LOCAL}{name}: local models need an extra: pip install 'ci-evals[local]'"
        ) from error
    folder = Path(name)
    if not folder.exists() and not _ON_THE_HUB.fullmatch(name):
        raise UsageError(
            f"--embedding-model={LOCAL}{name}: there is no such folder; models of the Hugging Face Hub have "
            "names like minishlab/potion-base-8M"
        )
    try:
        return StaticModel.from_pretrained(folder if folder.exists() else name, force_download=False)
    except Exception as error:
        where = "in that folder" if folder.exists() else "of that name, here or on the Hugging Face Hub"
        reason = " ".join(str(error).split())
        raise UsageError(
            f"--embedding-model={LOCAL}{name}: there is no model for model2vec {where}: {reason}"
        ) from error
