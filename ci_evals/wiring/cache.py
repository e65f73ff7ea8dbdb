"""The cache before the models that judge, where one is wanted."""

import os
from dataclasses import dataclass

from ci_evals.adapters.answer_cache import AnswerCache, signing_key
from ci_evals.adapters.models.cached_llm import CachedLLM
from ci_evals.adapters.models.claude_code_llm import ClaudeCodeLLM
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.ports import LLM
from ci_evals.redaction import Redactor
from ci_evals.wiring.adapter import Adapter


@dataclass(frozen=True)
class Cache:
    """What was answered earlier, for the judges of one run."""

    answers: AnswerCache | None
    provider: str
    purpose: str
    """What judges are asked for: to judge again is to ask anew, whatever was answered in the run."""

    @classmethod
    def of(cls, adapter: Adapter, redactor: Redactor, purpose: str) -> "Cache":
        """The cache that the settings ask for, if they do."""
        if adapter.judge_cache is None:
            return cls(None, adapter.provider, purpose)
        key = signing_key(adapter.llm_key or adapter.llm_token, os.environ)
        return cls(AnswerCache(adapter.judge_cache, redactor, key), adapter.provider, purpose)

    def before(self, llm: SdkLLM | ClaudeCodeLLM) -> LLM:
        """The model, asked only for what it was not asked before."""
        if self.answers is None:
            return llm
        address = llm.address if isinstance(llm, SdkLLM) else ""
        return CachedLLM(llm, self.answers, (self.purpose, self.provider, address))

    def notes(self) -> tuple[str, ...]:
        """What its user should know of it."""
        note = self.answers and self.answers.note()
        return (note,) if note else ()

    def close(self) -> None:
        """Takes away what is too old to be given again."""
        if self.answers:
            self.answers.sweep()
