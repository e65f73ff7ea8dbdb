"""A model that is not asked the same question twice."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ci_evals.adapters.answer_cache import VERSION, AnswerCache
from ci_evals.ports import LLM, Completion, Prompt
from ci_evals.support.digest import digest


class CachedLLM:
    """A model behind a cache. Implements the port `LLM`. Only accepted answers are kept."""

    def __init__(self, llm: LLM, cache: AnswerCache, who: Sequence[str]) -> None:
        """Cache a model. `who` is what answers depend on besides model and question: provider, address, …."""
        self.model = llm.model
        self._llm, self._cache, self._who = llm, cache, [*who]

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the cached answer, at no cost, or ask the model."""
        key = self._key(prompt)
        if (answer := self._cache.find(key, self.model)) is not None:
            return Completion(answer, cost_usd=0.0, cached=True)
        completion = await self._llm.complete(prompt)
        return replace(completion, accept=partial(self._cache.keep, key, self.model, completion.text))

    def _key(self, prompt: Prompt) -> str:
        """Return the digest of all that the answer depends on."""
        schema = json.dumps(prompt.schema)  # the order of its keys counts
        question = [prompt.system, prompt.text, schema, prompt.schema_name, prompt.sample_id]
        return digest([VERSION, *self._who, self.model, *question])
