"""An agent out of any object that code gives: one with methods, one of four methods, or a function."""

from typing import Any

from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.function_agent import FunctionAgent
from ci_evals.adapters.code.object_agent import CodeAgent, ObjectAgent
from ci_evals.domain.errors import UsageError
from ci_evals.support.redaction import Redactor

FORMS = (
    "a function reply(message), or an object with open_session and send_message, "
    "or with spawn_session and send_message"
)


def agent_of(
    target: Any, name: str, about: About, redactor: Redactor | None = None, *, apart: bool = False
) -> CodeAgent:
    """The agent that `target` is; `name` is what errors call it, `apart` is `Lane`'s. Calls nothing of it.

    Raises:
        UsageError: it is none, or cannot be called as it will be.
    """
    if _has(target, "open_session", "send_message"):
        return ObjectAgent(target, name, about, redactor=redactor, apart=apart)
    if _has(target, "spawn_session", "send_message"):
        from ci_evals.adapters.code.four_methods import FourMethodAgent  # noqa: PLC0415  # 0.2 s, for few

        return FourMethodAgent(target, name, about, redactor=redactor, apart=apart)
    if callable(target) and not isinstance(target, type):
        return FunctionAgent(target, name, about, redactor=redactor, apart=apart)
    what = (
        f"the class {target.__name__}" if isinstance(target, type) else f"of the type {type(target).__name__}"
    )
    raise UsageError(f"{name} is no agent but {what}; an agent is {FORMS}{_respelt(target)}")


def _respelt(target: Any) -> str:
    """A hint at methods that are there in the spelling of JavaScript."""
    camel = [name for name in ("openSession", "spawnSession", "sendMessage") if hasattr(target, name)]
    return f" (found {', '.join(camel)}: in Python names are spelt as in send_message)" if camel else ""


def _has(target: Any, *methods: str) -> bool:
    return not isinstance(target, type) and all(callable(getattr(target, name, None)) for name in methods)
