"""Model families, by their names: a judge may prefer the answers of its own family."""

import re
from collections.abc import Iterable, Mapping

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.suite import Suite

_FAMILIES: Mapping[str, str] = {
    "GPT": r"(?<![a-z])(?:chat)?gpt(?![a-z])|(?:^|[/:])o[1-9](?![a-z0-9])",
    "Claude": r"claude|^(?:opus|sonnet|haiku|fable|mythos)(?:\[1m\])?$",
    "Gemini": r"gemini|gemma",
    "Llama": r"llama",
    "Mistral": r"mi[sx]tral|ministral|magistral|codestral|devstral",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Grok": r"(?<![a-z])grok",
    "Command": r"(?<![a-z])command-(?:r|a|light|nightly)(?![a-z])",
    "Nova": r"amazon[./]nova",
    "Kimi": r"kimi-|moonshot",
    "GLM": r"(?<![a-z])glm-\d",
}
"""Patterns for the names of a family's models on any server: `gpt-6-luna`, `openai/gpt-6-luna`, …"""

_MAX_PAIRS = 3
_SAME_FAMILY = "judge and agent are from the same model family"


def family(model: str) -> str | None:
    """Return the family of a model, the first one that its name mentions; None if it mentions none."""
    matches = {name: re.search(pattern, model, re.IGNORECASE) for name, pattern in _FAMILIES.items()}
    starts = {name: match.start() for name, match in matches.items() if match}
    return min(starts, key=starts.__getitem__) if starts else None


def agents_model(suite: Suite) -> str | None:
    """Return the model behind a suite's agent, if it is known."""
    kind = AGENT_KINDS.get(suite.adapter)
    if kind and kind.embedded:
        return None  # no model at all
    if kind and kind.id_is_model:
        return suite.model or suite.agent_id
    return suite.model


def may_be_reported(suite: Suite) -> bool:
    """Return whether only an agent's replies can say which family it is of: no option and no suite does."""
    return family(agents_model(suite) or "") is None


def warnings(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return one warning, or none, about judges and the agents' models that they judge."""
    related = dict.fromkeys(pair for pair in pairs if family(pair[0]) == family(pair[1]) is not None)
    if not related:
        return ()
    shown = [f"{judge} judges {agent} ({family(judge)})" for judge, agent in [*related][:_MAX_PAIRS]]
    shown += [f"and {len(related) - _MAX_PAIRS} more"] if len(related) > _MAX_PAIRS else []
    warning = (
        f"{_SAME_FAMILY}: {', '.join(shown)}; models tend to rate their own "
        "family's answers higher: choose a judge of another family by judge-model and provider"
    )
    return (warning,)


def is_outdated(warning: str, judges: Iterable[str]) -> bool:
    """Return whether this is such a warning, and none of these judges is of the family."""
    return warning.startswith(_SAME_FAMILY) and not any(f"({family(judge)})" in warning for judge in judges)
