"""The LLM behind judge and simulated user: providers by name, their default models, building them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ci_evals.adapters.models import anthropic_llm, claude_code_llm, openai_embedder, openai_llm
from ci_evals.adapters.models.claude_code_llm import ClaudeCodeLLM
from ci_evals.adapters.models.local_embedder import LocalEmbedder
from ci_evals.adapters.models.openai_embedder import OpenAIEmbedder
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import LOCAL
from ci_evals.domain.results.run import OFFLINE
from ci_evals.support.redaction import Redactor

LLM_TIMEOUT = 120.0
"""Seconds that each attempt to ask a model may take, if nobody says otherwise."""
CLAUDE_CODE = "claude-code"


@dataclass(frozen=True)
class Models:
    """Which models play the judge and the simulated user."""

    judge: str
    """The judge, or the first of the panel."""
    user: str
    panel: tuple[str, ...] = ()
    """The models that vote in turn, where several do."""
    votes: int = 1
    """On one criterion, at the most."""

    @property
    def judges(self) -> tuple[str, ...]:
        """All models that judge."""
        return self.panel or (self.judge,)


DEFAULT_MODELS: Mapping[str, Models] = {
    "openai": Models(openai_llm.DEFAULT_JUDGE_MODEL, openai_llm.DEFAULT_USER_MODEL),
    "anthropic": Models(anthropic_llm.DEFAULT_JUDGE_MODEL, anthropic_llm.DEFAULT_USER_MODEL),
    CLAUDE_CODE: Models(claude_code_llm.DEFAULT_JUDGE_MODEL, claude_code_llm.DEFAULT_USER_MODEL),
}
"""Used where neither option nor suite names a model: a middle tier to judge, a small one to play the user."""

DEFAULT_EMBEDDING_MODELS: Mapping[str, str] = {"openai": openai_embedder.DEFAULT_MODEL}
"""Of the providers that have any."""

PROVIDERS = (*DEFAULT_MODELS, OFFLINE)
WITHOUT_KEY = frozenset({CLAUDE_CODE, OFFLINE})
"""Providers that need no key of ours."""
TELLS_COST = frozenset({CLAUDE_CODE})
"""Providers that say themselves what a call has cost, so that no table of prices is needed."""


class Key(NamedTuple):
    """One of the two, or neither."""

    key: str | None = None
    token: str | None = None
    """A bearer token in place of the key."""


def llm_key_of(provider: str, given: str | None, environ: Mapping[str, str]) -> Key:
    """The key that was given, else that of any provider, else what stands where the provider's tools look."""
    if provider in WITHOUT_KEY:
        return Key()
    vendor = _class_of(provider, environ).vendor
    if key := given or environ.get("LLM_API_KEY") or environ.get(vendor.key):
        return Key(key=key)
    return Key(token=(environ.get(vendor.bearer) or None) if vendor.bearer else None)


def no_key(provider: str) -> str:
    """What to say where a plan needs an LLM and there is no key for it."""
    vendor = _class_of(provider, os.environ).vendor
    own = f"{vendor.key} or {vendor.bearer}" if vendor.bearer else vendor.key
    return (
        f"no key for the LLM ({provider}) that plays the user and judges: set LLM_API_KEY or {own} "
        "(in a workflow the input llm-key), or run without an LLM: --provider=offline"
    )


def llm(
    provider: str,
    model: str,
    key: str | None,
    redactor: Redactor,
    *,
    token: str | None = None,
    timeout: float = LLM_TIMEOUT,
) -> SdkLLM | ClaudeCodeLLM:
    """The provider's model of that name. Its SDK is imported when it is first asked.

    Raises:
        UsageError: there is neither key nor token, or the provider's program is not there.
    """
    if provider == CLAUDE_CODE:
        return ClaudeCodeLLM(model, os.environ, redactor=redactor, timeout=timeout)
    return _over_sdk(provider, model, key, token, redactor, timeout=timeout)


def embedder(
    provider: str,
    model: str,
    key: str | None,
    redactor: Redactor,
    *,
    token: str | None = None,
    timeout: float = LLM_TIMEOUT,
) -> OpenAIEmbedder | LocalEmbedder:
    """The embedding model of that name, the provider's or one that runs here (`local:NAME`).

    Raises:
        UsageError: the provider has none or there is no key for it; or a local model cannot be had.
    """
    if runs_here(model):
        return LocalEmbedder(model)
    if provider not in DEFAULT_EMBEDDING_MODELS:
        raise UsageError(
            f"--embedding-model={model}: the provider {provider} has no embedding models; name one that runs "
            f"here, {LOCAL}NAME, or use --provider=openai"
        )
    return OpenAIEmbedder(_over_sdk(provider, model, key, token, redactor, timeout=timeout))


def embedding_model(provider: str, named: str | None) -> str | None:
    """The model that compares meanings: the one named, else the provider's own; None without either."""
    return named or DEFAULT_EMBEDDING_MODELS.get(provider)


def runs_here(model: str) -> bool:
    """Whether an embedding model needs no provider."""
    return model.startswith(LOCAL)


def _over_sdk(
    provider: str, model: str, key: str | None, token: str | None, redactor: Redactor, *, timeout: float
) -> SdkLLM:
    if not (key or token):
        raise UsageError(no_key(provider))
    return _class_of(provider, os.environ)(
        model, key, timeout=timeout, token=token, redactor=redactor, environ=os.environ
    )


def _class_of(provider: str, environ: Mapping[str, str]) -> type[SdkLLM]:
    if provider == "anthropic":
        return anthropic_llm.AnthropicLLM
    return openai_llm.AzureOpenAILLM if openai_llm.is_azure(environ) else openai_llm.OpenAILLM
