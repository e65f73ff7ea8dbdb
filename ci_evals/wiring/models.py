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


@dataclass(frozen=True)
class JudgeCache:
    """Earlier answers of one judge, and the judge check that it passed."""

    llm: ProviderLLM
    answers: AnswerCache
    provider: str

    def find_check(self, prompt: str) -> str | None:
        """Return the passed judge check that was kept for a digest of prompts."""
        return self.answers.find(self._key(prompt), self.llm.model)

    def keep_check(self, prompt: str, check: str) -> None:
        """Keep a passed judge check, for runs and for judging again alike."""
        self.answers.keep(self._key(prompt), self.llm.model, check)

    def hold(self) -> None:
        """Keep no answers of this judge until they are released."""
        self.answers.hold(self.llm.model)

    def release(self) -> None:
        """Keep the answers that were held, and those to come."""
        self.answers.release(self.llm.model)

    def _key(self, prompt: str) -> str:
        parts = [VERSION, "judge check", self.provider, _address(self.llm), self.llm.model, prompt]
        return digest(parts)


def _address(llm: ProviderLLM) -> str:
    """The address of a model's server; empty for a program of this machine."""
    return llm.address if isinstance(llm, SdkLLM) else ""


class RunModels:
    """The models of one provider, each built when it is first asked for, and closed with the stack."""

    def __init__(
        self, connections: Connections, redactor: Redactor, stack: AsyncExitStack, purpose: str
    ) -> None:
        """Build nothing yet. `purpose` separates the cached answers of runs from those of judging again."""
        self._connections, self._redactor, self._stack, self._purpose = connections, redactor, stack, purpose
        self._llms: dict[str, ProviderLLM] = {}
        self._embedder: OpenAIEmbedder | LocalEmbedder | None = None
        self._answers: AnswerCache | None = None
        if connections.judge_cache:
            key = signing_key(connections.llm_key or connections.llm_token, connections.environ)
            self._answers = AnswerCache(connections.judge_cache, redactor, key)
            stack.callback(self._answers.sweep)

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
        """The model of that name behind the cache of answers, if there is one."""
        llm = self.llm(model)
        if self._answers is None:
            return llm
        return CachedLLM(llm, self._answers, (self._purpose, self._connections.provider, _address(llm)))

    def cache(self, model: str) -> JudgeCache | None:
        """The cache of a judge's answers and checks, if the settings ask for one."""
        return (
            JudgeCache(self.llm(model), self._answers, self._connections.provider) if self._answers else None
        )

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
        """The current waits for each model."""
        return [model.waits() for model in self._limited()]

    def notes(self) -> tuple[str, ...]:
        """Limits that providers have set to the rate until now, and what is known of the cache."""
        notes = [model.note() for model in self._limited()]
        notes += [self._answers.note()] if self._answers else []
        return tuple(note for note in notes if note)

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
