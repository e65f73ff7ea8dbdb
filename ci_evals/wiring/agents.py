"""The agent that a suite names, whichever adapter speaks to it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ci_evals.adapters.code import plugins
from ci_evals.adapters.code.about import About
from ci_evals.adapters.endpoints import chat_wire
from ci_evals.adapters.endpoints.aui_agent import AuiAgent, AuiConfig
from ci_evals.adapters.endpoints.aui_wire import DEFAULT_BASE_URL, AgentIdPlace
from ci_evals.adapters.endpoints.chat_agent import ChatAgent, ChatConfig
from ci_evals.domain.agents import BUILT_IN, ChatOptions, HttpOptions
from ci_evals.domain.suite import Suite
from ci_evals.ports import Agent
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.rate_limiters import RateLimiters

if TYPE_CHECKING:
    from ci_evals.adapters.code.hosting.host import Host
    from ci_evals.adapters.endpoints.http_agent import HttpAgent
    from ci_evals.demo_agent.server import DemoServer


def agent(
    suite: Suite,
    adapter: Connections,
    redactor: Redactor,
    demo: "Callable[[], DemoServer]",
    limiters: RateLimiters,
    *,
    host: "Callable[[], Host]",
) -> Agent:
    """The agent of a suite.

    `demo` gives the embedded agent's server, started when it is first asked for, `host` the process for
    agents in Python.

    Raises:
        UsageError: an address, a module, a program or a plug-in cannot be used.
    """
    name = suite.adapter
    plugins.check_built_in(name)
    if name not in BUILT_IN:
        from ci_evals.wiring import code  # noqa: PLC0415  # most suites speak to a server

        apart = None if adapter.agent_in_process else host
        return code.agent(name, about(suite, redactor, debug=adapter.debug), redactor, apart)
    if name == "demo":
        return _demo(suite, adapter, demo())
    return _OVER_HTTP[name](suite, adapter, redactor, limiters)


def about(suite: Suite, redactor: Redactor, *, debug: bool = False) -> About:
    """What a suite says of its agent to one that is code."""
    return About(
        agent_id=redactor.only_keys.text(suite.agent_id) if suite.agent_id else None,
        api_key=(suite.api_key.get_secret_value().strip() or None) if suite.api_key else None,
        base_url=suite.base_url,
        model=suite.model,
        options=suite.adapter_options or {},
        debug=debug,
    )


def _aui(suite: Suite, adapter: Connections, redactor: Redactor, limiters: RateLimiters) -> AuiAgent:
    config = AuiConfig(
        agent_id=redactor.only_keys.text(suite.agent_id) if suite.agent_id else None,
        key=suite.api_key.get_secret_value() if suite.api_key else "",
        base_url=suite.base_url or DEFAULT_BASE_URL,
        key_header=adapter.key_header,
        headers=adapter.headers,
        agent_id_in=AgentIdPlace(adapter.agent_id_in),
        task_origin_type=adapter.task_origin_type,
        debug=adapter.debug,
    )
    return AuiAgent(config, redactor=redactor, limiter=limiters.of(config.base_url, config.key))


def _chat(suite: Suite, adapter: Connections, redactor: Redactor, limiters: RateLimiters) -> ChatAgent:
    said = about(suite, redactor, debug=adapter.debug)
    config = ChatConfig(
        model=said.model or said.agent_id or "",
        key=said.api_key or "",
        base_url=said.base_url or chat_wire.DEFAULT_BASE_URL,
        options=ChatOptions.model_validate(said.options),
        headers=adapter.headers,
        debug=said.debug,
    )
    return ChatAgent(config, redactor=redactor, limiter=limiters.of(config.base_url, config.key))


def _http(suite: Suite, adapter: Connections, redactor: Redactor, limiters: RateLimiters) -> "HttpAgent":
    from ci_evals.adapters.endpoints.http_agent import HttpAgent, HttpConfig  # noqa: PLC0415  # 0.1 s, for the JSONPaths

    said = about(suite, redactor, debug=adapter.debug)
    config = HttpConfig(
        base_url=said.base_url or "",
        options=HttpOptions.model_validate(said.options),
        key=said.api_key or "",
        agent_id=said.agent_id,
        model=said.model,
        headers=adapter.headers,
        debug=said.debug,
    )
    return HttpAgent(config, redactor=redactor, limiter=limiters.of(config.base_url, config.key))


def _demo(suite: Suite, adapter: Connections, server: "DemoServer") -> AuiAgent:
    return AuiAgent(
        AuiConfig(agent_id=suite.agent_id, key="demo-key", base_url=server.base_url, debug=adapter.debug)
    )


_OVER_HTTP: Mapping[str, Callable[[Suite, Connections, Redactor, RateLimiters], Agent]] = {
    "aui": _aui,
    "openai": _chat,
    "http": _http,
}
