"""A model that is not asked twice: what it answered to a question is given again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ci_evals.adapters.answer_cache import VERSION, AnswerCache
from ci_evals.ports import LLM, Completion, Prompt
from ci_evals.support.digest import digest


class CachedLLM:
    """A model with a cache before it. Implements the port `LLM`.

    Only an answer that whoever asked has accepted is kept, so that none that is void is ever given again.
    """

    def __init__(self, llm: LLM, cache: AnswerCache, who: Sequence[str]) -> None:
        """`who` says what an answer depends on besides model and question: provider, address, purpose."""
        self.model = llm.model
        self._llm, self._cache, self._who = llm, cache, [*who]

    async def complete(self, prompt: Prompt) -> Completion:
        """The answer that was given earlier, at no cost; else the model is asked."""
        key = self._key(prompt)
        if (answer := self._cache.find(key, self.model)) is not None:
            return Completion(answer, cost_usd=0.0, cached=True)
        completion = await self._llm.complete(prompt)
        return replace(completion, accept=partial(self._cache.keep, key, self.model, completion.text))

    def _key(self, prompt: Prompt) -> str:
        """The digest of all that the answer depends on, and of the sample_id, whose answer is its own."""
        schema = json.dumps(prompt.schema)  # whose order counts: it is the order of writing
        asked = [prompt.system, prompt.text, schema, prompt.schema_name, prompt.sample_id]
        return digest([VERSION, *self._who, self.model, *asked])
