"""A provider's models, each built once."""

from contextlib import AsyncExitStack

from ci_evals.adapters.models.claude_code_llm import ClaudeCodeLLM
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import models
from ci_evals.wiring.connections import Connections


class LLMs(dict[str, SdkLLM | ClaudeCodeLLM]):
    """Models by name: each is built when first looked up, and closed with the stack.

    A look-up raises `UsageError` if there is no key, or the provider's program is not there.
    """

    def __init__(self, adapter: Connections, redactor: Redactor, stack: AsyncExitStack) -> None:
        super().__init__()
        self._adapter, self._redactor, self._stack = adapter, redactor, stack

    def __missing__(self, model: str) -> SdkLLM | ClaudeCodeLLM:
        adapter = self._adapter
        llm = self[model] = models.llm(
            adapter.provider,
            model,
            adapter.llm_key,
            self._redactor,
            token=adapter.llm_token,
            timeout=adapter.llm_timeout,
        )
        self._stack.push_async_callback(llm.aclose)
        return llm
