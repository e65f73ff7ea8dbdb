"""Whether the judge is of the same family of models as the agent that it judges, where their names tell."""

import re
from collections.abc import Iterable, Mapping

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
"""How the models of a family are called, by whichever server: `gpt-6-luna`, `openai/gpt-6-luna`, …"""

_SHOWN = 3
_AKIN = "judge and agent are of one family of models"


def family(model: str) -> str | None:
    """The family that a model's name tells, the first one named in it; None where it tells none."""
    matches = {name: re.search(pattern, model, re.IGNORECASE) for name, pattern in _FAMILIES.items()}
    found = {name: match.start() for name, match in matches.items() if match}
    return min(found, key=found.__getitem__) if found else None


def agents_model(suite: Suite) -> str | None:
    """The model that is known to answer in a suite, if any is."""
    match suite.adapter:
        case "demo":
            return None  # no model at all
        case "openai":
            return suite.model or suite.agent_id
        case _:
            return suite.model


def warnings(judged: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What to say of judges and the agents' models that they judge, in pairs: one warning, or none."""
    akin = dict.fromkeys(pair for pair in judged if family(pair[0]) == family(pair[1]) is not None)
    if not akin:
        return ()
    said = [f"{judge} judges {agent} ({family(judge)})" for judge, agent in [*akin][:_SHOWN]]
    said += [f"and {len(akin) - _SHOWN} more"] if len(akin) > _SHOWN else []
    told = (
        f"{_AKIN}: {', '.join(said)}; models tend to rate their own "
        "family's answers higher: name a judge of another one by --judge-model, with its --provider"
    )
    return (told,)


def is_outdated(warning: str, judges: Iterable[str]) -> bool:
    """Whether a warning of ours does not hold any more where these are the judges."""
    return warning.startswith(_AKIN) and not any(f"({family(judge)})" in warning for judge in judges)
