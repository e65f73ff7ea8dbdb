"""Who plays where a library's caller brings an object of his own."""

from typing import Any

from ci_evals.adapters.code.any_agent import agent_of
from ci_evals.adapters.code.four_methods import FourMethodAgent, MethodLLM
from ci_evals.domain.suite import Suite
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import about


def participants_for(
    target: Any, suite: Suite, redactor: Redactor | None = None, *, debug: bool = False
) -> Participants:
    """The participants that an object gives for a suite.

    An object with `open_session` and `send_message`, or a function `reply(message)`, is the agent alone: the
    user is scripted, and nothing is judged. One with the four methods of the adapters of `@aui.io/evals` is
    the agent, and the models behind judge and simulated user too, where it has their methods. `Participants`
    stay as they are.

    Raises:
        UsageError: it is none of these, or cannot be called as it will be.
    """
    if isinstance(target, Participants):
        return target
    redactor = redactor or Redactor()
    name = getattr(target, "__qualname__", type(target).__qualname__)
    agent = agent_of(target, name, about(suite, redactor, debug=debug), redactor)
    if not isinstance(agent, FourMethodAgent):
        return Participants(agent)

    def llm(method: str, model: str | None) -> MethodLLM | None:
        function = getattr(target, method, None)
        return MethodLLM(function, f"{name}.{method}", model, redactor=redactor) if function else None

    return Participants(
        agent, llm("generate_user_message", suite.user_model), llm("call_judge", suite.judge_model)
    )
