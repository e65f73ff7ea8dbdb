"""A model that is not asked the same question twice."""

import json
from dataclasses import replace
from functools import partial

from ci_evals.adapters.answer_cache import VERSION, AnswerCache
from ci_evals.ports import LLM, Completion, Prompt
from ci_evals.support.digest import digest


class CachedLLM:
    """A judge behind a cache of its answers and its judge check. Implements the port `LLM`.

    Only accepted answers are kept, each under a digest of all that it depends on.
    """

    def __init__(self, llm: LLM, cache: AnswerCache, purpose: str, *service: str) -> None:
        """Cache a model. `purpose` separates answers of runs and of rejudging; `service` serves the model."""
        self.model = llm.model
        self._llm, self._cache, self._purpose, self._service = llm, cache, purpose, service

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the cached answer, at no cost, or ask the model."""
        schema = json.dumps(prompt.schema)  # the order of its keys counts
        question = [prompt.system, prompt.text, schema, prompt.schema_name, prompt.sample_id]
        key = digest([VERSION, self._purpose, *self._service, self.model, *question])
        if (answer := self._cache.find(key, self.model)) is not None:
            return Completion(answer, cost_usd=0.0, cached=True)
        completion = await self._llm.complete(prompt)
        return replace(completion, accept=partial(self._cache.keep, key, self.model, completion.text))

    def find_check(self, prompt: str) -> str | None:
        """Return the passed judge check that was kept for a digest of prompts."""
        return self._cache.find(self._check_key(prompt), self.model)

    def keep_check(self, prompt: str, check: str) -> None:
        """Keep a passed judge check, for runs and for judging again alike."""
        self._cache.keep(self._check_key(prompt), self.model, check)

    def hold(self) -> None:
        """Keep no answers of this judge until they are released."""
        self._cache.hold(self.model)

    def release(self) -> None:
        """Keep the answers that were held, and those to come."""
        self._cache.release(self.model)

    def _check_key(self, prompt: str) -> str:
        return digest([VERSION, "judge check", *self._service, self.model, prompt])
