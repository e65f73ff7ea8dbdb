"""The real models of a run, and the cache of answers before those that judge."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ci_evals.adapters.answer_cache import VERSION, AnswerCache, signing_key
from ci_evals.adapters.models.cached_llm import CachedLLM
from ci_evals.adapters.models.claude_code_llm import ClaudeCodeLLM
from ci_evals.adapters.models.local_embedder import LocalEmbedder
from ci_evals.adapters.models.openai_embedder import OpenAIEmbedder
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import LOCAL
from ci_evals.ports import LLM
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.providers import CLAUDE_CODE, DEFAULT_EMBEDDING_MODELS, no_key, runs_here, sdk_of

ProviderLLM = SdkLLM | ClaudeCodeLLM


class RunModels:
    """The models of one provider, each built when it is first asked for, and closed with the stack."""

    def __init__(
        self, connections: Connections, redactor: Redactor, stack: AsyncExitStack, purpose: str
    ) -> None:
        """Build nothing yet. `purpose` separates the cached answers of runs from those of judging again."""
        self.cache = JudgeCache.of(connections, redactor, purpose)
        self._connections, self._redactor, self._stack = connections, redactor, stack
        self._llms: dict[str, ProviderLLM] = {}
        self._embedder: OpenAIEmbedder | LocalEmbedder | None = None
        stack.callback(self.cache.close)

    def llm(self, model: str) -> ProviderLLM:
        """The model of that name.

        Raises:
            UsageError: there is no key, or the provider's program is missing.
        """
        if model not in self._llms:
            connections = self._connections
            if connections.provider == CLAUDE_CODE:
                timeout = connections.llm_timeout
                llm: ProviderLLM = ClaudeCodeLLM(
                    model, connections.environ, redactor=self._redactor, timeout=timeout
                )
            else:
                llm = self._over_sdk(model)
            self._llms[model] = llm
            self._stack.push_async_callback(llm.aclose)
        return self._llms[model]

    def judge(self, model: str) -> LLM:
        """The model of that name behind the cache of answers."""
        return self.cache.before(self.llm(model))

    def embedder(self, model: str) -> OpenAIEmbedder | LocalEmbedder:
        """The embedding model of that name, the provider's or one that runs here (`local:NAME`).

        Raises:
            UsageError: the provider has none or there is no key for it; or a local model cannot be had.
        """
        if runs_here(model):
            self._embedder = LocalEmbedder(model)
        elif (provider := self._connections.provider) in DEFAULT_EMBEDDING_MODELS:
            self._embedder = OpenAIEmbedder(self._over_sdk(model))
        else:
            raise UsageError(
                f"--embedding-model={model}: the provider {provider} has no embedding models; name one that "
                f"runs here, {LOCAL}NAME, or use --provider=openai"
            )
        self._stack.push_async_callback(self._embedder.aclose)
        return self._embedder

    async def check(self) -> None:
        """Learn whether the models' key is good. That costs nothing, and takes some seconds at most.

        All models have one key, so one of them is asked. Its SDK is imported for that, if it was not before.

        Raises:
            LLMAccessError: it is refused, or has no quota left.
        """
        models = (*self._llms.values(), self._embedder)
        if model := next((model for model in models if isinstance(model, SdkLLM | OpenAIEmbedder)), None):
            await model.check()

    def waits(self) -> list[tuple[str, Waiting | None]]:
        """How long each model is waited for now."""
        return [model.waits() for model in self._limited()]

    def notes(self) -> tuple[str, ...]:
        """Limits that providers have set to the rate until now, and what is known of the cache."""
        notes = (model.note() for model in self._limited())
        return (*(note for note in notes if note), *self.cache.notes())

    def _limited(self) -> Iterator[ProviderLLM | OpenAIEmbedder]:
        yield from self._llms.values()
        if isinstance(self._embedder, OpenAIEmbedder):
            yield self._embedder

    def _over_sdk(self, model: str) -> SdkLLM:
        """A model whose SDK is imported when it is first asked."""
        connections = self._connections
        key, token = connections.llm_key, connections.llm_token
        if not (key or token):
            raise UsageError(no_key(connections.provider, connections.environ))
        sdk = sdk_of(connections.provider, connections.environ)
        return sdk(
            model,
            key,
            timeout=connections.llm_timeout,
            token=token,
            redactor=self._redactor,
            environ=connections.environ,
        )


@dataclass(frozen=True)
class JudgeCache:
    """Earlier answers of judges, and the judge checks that they passed."""

    answers: AnswerCache | None
    provider: str
    purpose: str
    """Runs and judging again share no answers."""

    @classmethod
    def of(cls, connections: Connections, redactor: Redactor, purpose: str) -> "JudgeCache":
        """The cache that the settings ask for, or an empty one that keeps nothing."""
        if connections.judge_cache is None:
            return cls(None, connections.provider, purpose)
        key = signing_key(connections.llm_key or connections.llm_token, connections.environ)
        answers = AnswerCache(connections.judge_cache, redactor, key)
        return cls(answers, connections.provider, purpose)

    def before(self, llm: ProviderLLM) -> LLM:
        """The model, asked only questions that it was not asked before."""
        if self.answers is None:
            return llm
        return CachedLLM(llm, self.answers, (self.purpose, self.provider, _address(llm)))

    def find_check(self, llm: ProviderLLM, prompt: str) -> str | None:
        """Return the passed judge check of this model that was kept for a digest of prompts."""
        return self.answers.find(self._check(llm, prompt), llm.model) if self.answers else None

    def keep_check(self, llm: ProviderLLM, prompt: str, check: str) -> None:
        """Keep a passed judge check, for runs and for judging again alike."""
        if self.answers:
            self.answers.keep(self._check(llm, prompt), llm.model, check)

    def hold(self, llm: ProviderLLM) -> None:
        """Keep no answers of this model until they are released."""
        if self.answers:
            self.answers.hold(llm.model)

    def release(self, llm: ProviderLLM) -> None:
        """Keep the answers of this model that were held, and those to come."""
        if self.answers:
            self.answers.release(llm.model)

    def _check(self, llm: ProviderLLM, prompt: str) -> str:
        return digest([VERSION, "judge check", self.provider, _address(llm), llm.model, prompt])

    def notes(self) -> tuple[str, ...]:
        """What its user should know of it."""
        note = self.answers and self.answers.note()
        return (note,) if note else ()

    def close(self) -> None:
        """Remove what is too old to be given again."""
        if self.answers:
            self.answers.sweep()


def _address(llm: ProviderLLM) -> str:
    """The address of a model's server; empty for a program of this machine."""
    return llm.address if isinstance(llm, SdkLLM) else ""
