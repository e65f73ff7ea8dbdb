"""The real models of a run, and the cache of answers before those that judge."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from ci_evals.adapters.answer_cache import AnswerCache, signing_key
from ci_evals.adapters.models.cached_llm import CachedLLM
from ci_evals.adapters.models.embedders import LocalEmbedder, OpenAIEmbedder
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.adapters.models.service import Service
from ci_evals.adapters.transport.rate_limiter import RateLimiter, Waiting
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import LOCAL
from ci_evals.extension_registry import providers
from ci_evals.ports import LLM
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.providers import ProviderLLM, keyless_of, no_key, runs_here, sdk_of


@dataclass(frozen=True)
class CheckedJudge:
    """A judge to be checked, and the cache of its passed checks."""

    llm: LLM
    """Asked directly, past any cache of answers."""
    cache: CachedLLM | None = None
    service: Service | None = None
    """Where it is asked; None if that is not known, and then no earlier check counts for it."""


class RunModels:
    """The models of one provider, each built when it is first asked for, and closed with the stack."""

    def __init__(
        self, connections: Connections, redactor: Redactor, stack: AsyncExitStack, purpose: str
    ) -> None:
        """Build nothing yet. `purpose` separates the cached answers of runs from those of judging again."""
        self._connections, self._redactor, self._stack, self._purpose = connections, redactor, stack, purpose
        self._llms: dict[str, ProviderLLM] = {}
        self._embedding_api: SdkLLM | None = None
        self._answers: AnswerCache | None = None
        if connections.judge_cache:
            key = signing_key(connections.llm_key or connections.llm_token, connections.environ)
            self._answers = AnswerCache(connections.judge_cache, redactor, key)
            stack.callback(self._answers.sweep)

    def llm(self, model: str) -> ProviderLLM:
        """The model of that name; raise `UsageError` if there is no key, or the program is missing."""
        if model not in self._llms:
            connections = self._connections
            if providers()[connections.provider].needs_key:
                self._llms[model] = self._over_sdk(model)
            else:
                models = keyless_of(connections.provider)
                self._llms[model] = models(
                    model, connections.environ, redactor=self._redactor, timeout=connections.llm_timeout
                )
        return self._llms[model]

    def judge(self, model: str) -> LLM:
        """The model of that name behind the cache of answers, if there is one."""
        return self.cached(model) or self.llm(model)

    def cached(self, model: str) -> CachedLLM | None:
        """The model of that name behind the cache of answers; None if the settings ask for no cache."""
        if self._answers is None:
            return None
        llm = self.llm(model)
        return CachedLLM(llm, self._answers, self._purpose, self._connections.provider, llm.address)

    def checked_judge(self, model: str) -> CheckedJudge:
        """The model of that name for a judge check, past the cache of answers."""
        llm = self.llm(model)
        return CheckedJudge(llm, self.cached(model), Service.at(llm.address))

    def embedder(self, model: str) -> OpenAIEmbedder | LocalEmbedder:
        """The embedding model of that name, the provider's or one that runs here (`local:NAME`).

        Raise `UsageError` if the provider has none or there is no key for it, or a local model cannot be had.
        """
        if runs_here(model):
            return LocalEmbedder(model)
        provider = self._connections.provider
        if not providers()[provider].embeddings:
            raise UsageError(
                f"`embedding_model={model}`: the provider {provider} has no embedding models; name one that "
                f"runs here, {LOCAL}NAME, or use `provider=openai`"
            )
        self._embedding_api = self._over_sdk(model)
        return OpenAIEmbedder(self._embedding_api)

    async def check(self) -> None:
        """Raise `LLMAccessError` if the models' key is refused or has no quota left. That costs nothing.

        All models have one key, so one of them is asked. Its SDK is imported for that, if it was not before.
        """
        if api := next((model for model in self._remote() if isinstance(model, SdkLLM)), None):
            await api.check()

    def waits(self) -> list[tuple[str, Waiting | None]]:
        """The current waits for each model."""
        return [(model.who, model.limiter.waiting()) for model in self._remote()]

    def limiters(self) -> list[RateLimiter]:
        """The limiters of the models, in the order in which they were built."""
        return [model.limiter for model in self._remote()]

    def notes(self) -> tuple[str, ...]:
        """Limits that providers have set to the rate until now, and what is known of the cache."""
        notes = [model.limiter.note(f"{model.who} ({model.model})") for model in self._remote()]
        notes += [self._answers.note()] if self._answers else []
        return tuple(note for note in notes if note)

    def _remote(self) -> list[ProviderLLM]:
        models = [*self._llms.values()]
        if self._embedding_api:
            models.append(self._embedding_api)
        return models

    def _over_sdk(self, model: str) -> SdkLLM:
        """A model whose SDK is imported when it is first asked."""
        connections = self._connections
        key, token = connections.llm_key, connections.llm_token
        if not (key or token):
            raise UsageError(no_key(connections.provider, connections.environ))
        api = sdk_of(connections.provider, connections.environ)(
            model,
            key,
            timeout=connections.llm_timeout,
            token=token,
            redactor=self._redactor,
            environ=connections.environ,
        )
        self._stack.push_async_callback(api.aclose)
        return api
