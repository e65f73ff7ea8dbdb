"""The cache before the models that judge, where one is wanted."""

import os
from dataclasses import dataclass

from ci_evals.adapters.answer_cache import VERSION, AnswerCache, signing_key
from ci_evals.adapters.models.cached_llm import CachedLLM
from ci_evals.adapters.models.claude_code_llm import ClaudeCodeLLM
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.ports import LLM
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections


@dataclass(frozen=True)
class Cache:
    """What was answered earlier, for the judges of one run."""

    answers: AnswerCache | None
    provider: str
    purpose: str
    """What judges are asked for: to judge again is to ask anew, whatever was answered in the run."""

    @classmethod
    def of(cls, adapter: Connections, redactor: Redactor, purpose: str) -> "Cache":
        """The cache that the settings ask for, if they do."""
        if adapter.judge_cache is None:
            return cls(None, adapter.provider, purpose)
        key = signing_key(adapter.llm_key or adapter.llm_token, os.environ)
        return cls(AnswerCache(adapter.judge_cache, redactor, key), adapter.provider, purpose)

    def before(self, llm: SdkLLM | ClaudeCodeLLM) -> LLM:
        """The model, asked only for what it was not asked before."""
        if self.answers is None:
            return llm
        return CachedLLM(llm, self.answers, (self.purpose, self.provider, _address(llm)))

    def find_check(self, llm: SdkLLM | ClaudeCodeLLM, prompt: str) -> str | None:
        """Return the passed judge check of this model that was kept for a digest of prompts."""
        return self.answers.find(self._check(llm, prompt), llm.model) if self.answers else None

    def keep_check(self, llm: SdkLLM | ClaudeCodeLLM, prompt: str, check: str) -> None:
        """Keep a passed judge check, for runs and for judging again alike."""
        if self.answers:
            self.answers.keep(self._check(llm, prompt), llm.model, check)

    def hold(self, llm: SdkLLM | ClaudeCodeLLM) -> None:
        """Keep no answers of this model until they are released."""
        if self.answers:
            self.answers.hold(llm.model)

    def release(self, llm: SdkLLM | ClaudeCodeLLM) -> None:
        """Keep the answers of this model that were held, and those to come."""
        if self.answers:
            self.answers.release(llm.model)

    def _check(self, llm: SdkLLM | ClaudeCodeLLM, prompt: str) -> str:
        return digest([VERSION, "judge check", self.provider, _address(llm), llm.model, prompt])

    def notes(self) -> tuple[str, ...]:
        """What its user should know of it."""
        note = self.answers and self.answers.note()
        return (note,) if note else ()

    def close(self) -> None:
        """Takes away what is too old to be given again."""
        if self.answers:
            self.answers.sweep()


def _address(llm: SdkLLM | ClaudeCodeLLM) -> str:
    """The address of a model's server; empty for a program of this machine."""
    return llm.address if isinstance(llm, SdkLLM) else ""
