"""Where real parts are built: agents and models from what a suite and its user say."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from ci_evals.adapters import anthropic_llm, openai_llm
from ci_evals.adapters.aui_agent import AuiAgent, AuiConfig
from ci_evals.adapters.aui_wire import (
    DEFAULT_BASE_URL,
    DEFAULT_KEY_HEADER,
    DEFAULT_TASK_ORIGIN_TYPE,
    AgentIdPlace,
)
from ci_evals.adapters.sdk_llm import SdkLLM
from ci_evals.demo_agent.server import DemoServer
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.suite import Suite
from ci_evals.planning.agents import AgentChoice
from ci_evals.planning.estimate import of_suite
from ci_evals.redaction import Redactor
from ci_evals.runner import Cast

OFFLINE = "offline"


@dataclass(frozen=True)
class Models:
    """Which models play the judge and the simulated user."""

    judge: str
    user: str


DEFAULT_MODELS: Mapping[str, Models] = {
    "openai": Models(openai_llm.DEFAULT_JUDGE_MODEL, openai_llm.DEFAULT_USER_MODEL),
    "anthropic": Models(anthropic_llm.DEFAULT_JUDGE_MODEL, anthropic_llm.DEFAULT_USER_MODEL),
}
"""Used where neither option nor suite names a model: a middle tier to judge, a small one to play the user."""


def no_key(provider: str) -> str:
    """What to say where a plan needs an LLM and there is no key for it."""
    return (
        f"no key for the LLM ({provider}) that plays the user and judges: give --llm-key, or set LLM_API_KEY "
        f"or {provider.upper()}_API_KEY; or run without an LLM: --provider=offline"
    )


@dataclass(frozen=True)
class Adapter:
    """How agents are reached, and which LLM plays user and judge. Opens nothing by itself."""

    provider: str = "openai"
    llm_key: str | None = field(default=None, repr=False)
    judge_model: str | None = None
    user_model: str | None = None
    choice: AgentChoice = field(default_factory=AgentChoice)
    """Another agent than the suites name."""
    key_header: str = DEFAULT_KEY_HEADER
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    agent_id_in: str = AgentIdPlace.TOP
    task_origin_type: str = DEFAULT_TASK_ORIGIN_TYPE
    debug: bool = False

    @property
    def offline(self) -> bool:
        """Whether no LLM is wanted: the user is scripted, nothing is judged."""
        return self.provider == OFFLINE

    def models(self, suite: Suite) -> Models | None:
        """The models for a suite: those asked for here, else the suite's own, else the provider's default."""
        if self.offline:
            return None
        default = DEFAULT_MODELS[self.provider]
        return Models(
            judge=self.judge_model or suite.judge_model or default.judge,
            user=self.user_model or suite.user_model or default.user,
        )

    def llm(self, model: str, redactor: Redactor) -> SdkLLM:
        """The model of that name. Imports the provider's SDK, which takes seconds.

        Raises:
            UsageError: there is no key.
        """
        if not self.llm_key:
            raise UsageError(no_key(self.provider))
        if self.provider == "anthropic":
            return anthropic_llm.AnthropicLLM(model, self.llm_key, redactor=redactor)
        return openai_llm.OpenAILLM(model, self.llm_key, redactor=redactor)

    def agent(self, suite: Suite, redactor: Redactor) -> AuiAgent:
        """The agent that a suite names."""
        config = AuiConfig(
            agent_id=redactor.only_keys.text(suite.agent_id) if suite.agent_id else None,
            key=suite.api_key.get_secret_value() if suite.api_key else "",
            base_url=suite.base_url or DEFAULT_BASE_URL,
            key_header=self.key_header,
            headers=self.headers,
            agent_id_in=AgentIdPlace(self.agent_id_in),
            task_origin_type=self.task_origin_type,
            debug=self.debug,
        )
        return AuiAgent(config, redactor=redactor)

    def demo_agent(self, suite: Suite, server: DemoServer) -> AuiAgent:
        """The embedded agent in the part that the suite names."""
        return AuiAgent(
            AuiConfig(agent_id=suite.agent_id, key="demo-key", base_url=server.base_url, debug=self.debug)
        )


@asynccontextmanager
async def casts(plan: Plan, adapter: Adapter, redactor: Redactor) -> AsyncIterator[tuple[Cast, ...]]:
    """A cast for each suite of the plan, and the embedded agent for the suites that name it, while in use.

    Raises:
        UsageError: the plan needs an LLM and there is no key, or an address cannot be used.
    """
    async with AsyncExitStack() as stack:
        server: DemoServer | None = None
        llms: dict[str, SdkLLM] = {}

        def llm(model: str) -> SdkLLM:
            if model not in llms:
                llms[model] = adapter.llm(model, redactor)
                stack.push_async_callback(llms[model].aclose)
            return llms[model]

        built = []
        for planned in plan.suites:
            if planned.suite.adapter == "demo":
                server = server or stack.enter_context(DemoServer())
                cast = Cast(adapter.demo_agent(planned.suite, server))
            else:
                cast = Cast(adapter.agent(planned.suite, redactor))
            models, work = adapter.models(planned.suite), of_suite(plan, planned)
            if models and work.user_calls:
                cast = replace(cast, user_llm=llm(models.user))
            if models and work.judge_calls:
                cast = replace(cast, judge_llm=llm(models.judge))
            built.append(cast)
        yield tuple(built)
