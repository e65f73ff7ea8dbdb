"""Embedding models: OpenAI's against a local server, and local ones out of a folder."""

import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import static_model
import world
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values
from world import Fault

from ci_evals.adapters.models.embedders import LocalEmbedder, OpenAIEmbedder, _vectors
from ci_evals.adapters.models.openai_llm import OpenAILLM
from ci_evals.adapters.models.sdk_llm import RefusedError
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.providers import OPENAI
from ci_evals.grading.semantic import cosine
from ci_evals.ports import Embeddings
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import RunModels
from ci_evals.wiring.providers import embedding_model

EMBEDDER = OPENAI.embeddings


async def embed(models: world.Models, *texts: str, key: str = world.LLM_KEY) -> Embeddings:
    limiter = world.limiter(budget=world.NO_RETRIES)
    api = OpenAILLM(EMBEDDER, key, models.openai_url, limiter=limiter, timeout=300)
    embedder = OpenAIEmbedder(api)
    assert embedder.model == EMBEDDER
    try:
        return await embedder.embed(texts)
    finally:
        await api.aclose()


async def test_texts_are_embedded_in_one_request_and_in_order():
    with world.llm() as models:
        result = await embed(models, "a", "bb", "half a pair \ud800")
    assert [vector[:2] for vector in result.vectors] == [(1, 0), (0, 2), (3, 0)]
    texts = ["a", "bb", "half a pair \ufffd"]
    assert models.embedded == [{"model": EMBEDDER, "input": texts, "encoding_format": "float"}]
    assert result.input_tokens == 9


@each_row(("fault", "error", "text"), [
    (world.SERVER_ERROR, RefusedError, "answered with status 500: The server fell over"),
    (world.RATE_LIMITED, RefusedError, "limits the rate of calls"),
    (world.NO_QUOTA, LLMAccessError, "has no quota left"),
    (world.UNAUTHORIZED, LLMAccessError, "refused the key"),
    (world.fault(404, "no such model"), RefusedError, "status 404: no such model"),
    (world.GARBAGE, LLMAnswerError, "cannot be read"),
    (Fault(200, "[]"), LLMAnswerError, "not a JSON object"),
    (Fault(200, "{}"), LLMAnswerError, "0 readable vectors for 1 texts; is text-embedding-3-small an"),
    (Fault(200, '{"data": [{"embedding": ["x"]}]}'), LLMAnswerError, "0 readable vectors for 1 texts"),
    (Fault(200, '{"data": [{"embedding": "AACAPw=="}]}'), LLMAnswerError, "0 readable vectors"),
])  # fmt: skip
async def test_failed_embedding_call_raises_the_matching_error(fault, error, text):
    with world.llm() as models:
        models.always = fault
        with pytest.raises(LLMError, match=re.escape(text)) as caught:
            await embed(models, "a")
    assert type(caught.value) is error


async def test_rejected_embedding_key_is_not_shown_in_error():
    with world.llm() as models, pytest.raises(LLMAccessError) as caught:
        await embed(models, "a", key="wrong-key-123")
    assert "wrong-key-123" not in str(caught.value)


@each_row(("data", "vectors"), [
    ([{"embedding": [1, 2]}, {"embedding": [3, 4]}], [(1, 2), (3, 4)]),
    ([{"index": 1, "embedding": [1]}, {"index": 0, "embedding": [2]}], [(2,), (1,)]),
    ([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}], 1),
    ([{"index": 7, "embedding": [1]}], 0),
    ([{"index": [], "embedding": [1]}, None, 5, {"embedding": None}], 0),
    ([{"index": True, "embedding": [1]}, {"embedding": [True]}, {"embedding": [10**400]}], 0),
    (None, 0),
])  # fmt: skip
def test_vectors_are_assigned_by_index_and_dropped_if_ambiguous(data, vectors):
    result = _vectors({"data": data})
    assert (result if isinstance(vectors, list) else len(result)) == vectors


KEYS = st.sampled_from(["data", "index", "embedding"])
SMALL = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | st.text(max_size=3)


@given(json_values(SMALL, KEYS, most=20))
def test_arbitrary_embedding_response_never_raises_and_yields_only_tuples(data):
    assert all(isinstance(vector, tuple) for vector in _vectors({"data": data}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return static_model.write_model(tmp_path_factory.mktemp("model"))


async def test_local_model_gives_similar_texts_similar_vectors(folder):
    """And texts as long as they may be are read whole; unknown words have no vector that can be compared."""
    embedder = LocalEmbedder(f"local:{folder}")
    result = await embedder.embed(["paris", "the capital of france", "a dog", "paris " * 600 + "dog " * 600])
    paris, capital, dog, both = result.vectors
    assert cosine(paris, capital) > 0.9 > 0.1 > cosine(paris, dog)
    assert cosine(both, paris) == pytest.approx(cosine(both, dog), rel=0.05)
    assert (embedder.model, result.input_tokens) == (f"local:{folder}", 0)
    (vector,) = (await embedder.embed(["xyzzy"])).vectors
    assert cosine(vector, vector) is None


def test_error_tells_missing_folder_invalid_model_and_missing_extra_apart(tmp_path, monkeypatch):
    nowhere = "there is no such folder; models of the Hugging Face Hub have names"
    with pytest.raises(UsageError, match=nowhere):
        LocalEmbedder("local:./nowhere")
    with pytest.raises(UsageError, match="there is no model for model2vec in that folder"):
        LocalEmbedder(f"local:{tmp_path}")
    for name, text in {"config.json": "{}", "tokenizer.json": "{}", "model.safetensors": "nothing"}.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match="there is no model for model2vec in that folder"):
        LocalEmbedder(f"local:{tmp_path}")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(UsageError) as caught:
        LocalEmbedder("local:x/y")
    extra = "local models need an extra: pip install 'ci-evals[local]'"
    assert str(caught.value) == f"`embedding_model=local:x/y`: {extra}"


def build_embedder(provider: str, model: str, key: str | None = None):
    """The embedding model of that name, as a run has it."""
    connections = Connections(provider=provider, llm_key=key)
    return RunModels(connections, Redactor(), AsyncExitStack(), "run").embedder(model)


def test_provider_without_embedding_models_needs_a_local_one(folder):
    for provider in ("anthropic", "claude-code", "offline"):
        assert embedding_model(provider, None) is None
        with pytest.raises(UsageError, match=f"the provider {provider} has no embedding models; name one"):
            build_embedder(provider, "text-embedding-3-small", "key")
        local = build_embedder(provider, f"local:{folder}")
        assert isinstance(local, LocalEmbedder)
    assert embedding_model("openai", None) == EMBEDDER
    with pytest.raises(UsageError, match="no key for the LLM"):
        build_embedder("openai", EMBEDDER)
