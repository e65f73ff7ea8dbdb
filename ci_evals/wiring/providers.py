"""The keys of providers, and the classes of their models."""

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.domain.prices import LOCAL
from ci_evals.extension_registry import providers
from ci_evals.ports import LLM
from ci_evals.support.redaction import Redactor


class ProviderLLM(LLM, Protocol):
    """A model of a provider. A run says who lets it wait."""

    who: str
    """The name of the service in messages."""
    address: str
    """Where the service is, or the name of its program."""
    limiter: RateLimiter


class KeylessModels(Protocol):
    """The class of models of a provider that needs no key."""

    def __call__(
        self, model: str, environ: Mapping[str, str], *, timeout: float, redactor: Redactor
    ) -> ProviderLLM:
        """Prepare a model, whose answers may take `timeout` seconds each.

        Raises:
            UsageError: it cannot be used on this machine.
        """


class ProviderKey(NamedTuple):
    """A key, or a bearer token instead of it, or neither."""

    key: str | None = None
    token: str | None = None


def llm_key_of(provider: str, option: str | None, environ: Mapping[str, str]) -> ProviderKey:
    """Return the key of the option, of `LLM_API_KEY`, or of the variables that the provider's tools read."""
    if not providers()[provider].needs_key:
        return ProviderKey()
    vendor = sdk_of(provider, environ).vendor
    if key := option or environ.get("LLM_API_KEY") or environ.get(vendor.key):
        return ProviderKey(key=key)
    return ProviderKey(token=(environ.get(vendor.bearer) or None) if vendor.bearer else None)


def no_key(provider: str, environ: Mapping[str, str]) -> str:
    """Return the message for a plan that needs an LLM and has no key for it."""
    vendor = sdk_of(provider, environ).vendor
    own = f"{vendor.key} or {vendor.bearer}" if vendor.bearer else vendor.key
    return (
        f"no key for the LLM ({provider}) that plays the user and judges: set LLM_API_KEY or {own} "
        "(in a workflow the input llm-key), or run without an LLM: `provider=offline`"
    )


def embedding_model(provider: str, option: str | None) -> str | None:
    """Return the model that compares meanings: that of the option, else the provider's own, if it has one."""
    return option or providers()[provider].embeddings or None


def runs_here(model: str) -> bool:
    """Return whether an embedding model needs no provider."""
    return model.startswith(LOCAL)


def sdk_of(provider: str, environ: Mapping[str, str]) -> type[SdkLLM]:
    """Return the class of a provider's models that are called over its SDK."""
    return cast("type[SdkLLM]", _models_of(provider)).for_environment(environ)


def keyless_of(provider: str) -> KeylessModels:
    """Return the class of the models of a provider that needs no key."""
    return cast("KeylessModels", _models_of(provider))


def _models_of(provider: str) -> object:
    """Return the class of a provider's models, whose module is imported now."""
    module, _, name = providers()[provider].models.partition(":")
    return getattr(import_module(module), name)
