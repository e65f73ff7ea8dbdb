"""The divergence of a conversation from the baseline's, in a sentence.

The text is plain and not sanitized: names and values in it are the agent's. Who shows it as Markdown or HTML
escapes it there, or gives the function for names.
"""

import json
from collections.abc import Callable, Iterable

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.comparison import Divergence, DivergentAction

_MOST_NAMED = 3
"""The most names of a kind."""
_LONGEST_VALUE = 40
"""Characters."""


UNTRACED = "One of the two runs has no trace, so it is unknown where the conversations diverge."
"""Said of two conversations whose divergence is not known."""


def sentence(divergence: Divergence, show: Callable[[str], str] = str, *, trials: bool = True) -> str:
    """The agent's different actions, and their turn. `show` writes a name, or a parameter's value.

    `trials`: whether to say which trials they are, unless both are the first.
    """
    return _of_agent(divergence, show, trials=trials) + _of_user(divergence)


def _of_agent(divergence: Divergence, show: Callable[[str], str], *, trials: bool) -> str:
    trial, baseline = "", "the baseline"
    if trials and (divergence.head_trial != 1 or divergence.base_trial != 1):
        trial, baseline = f"Trial {divergence.head_trial} ", f"trial {divergence.base_trial} of the baseline"
    actions, base_actions = _actions(divergence.head, show), _actions(divergence.base, show)
    if divergence.turn is None:
        text = _same(divergence, baseline)
        trial = trial and f"{trial.rstrip()}: "
    elif divergence.only == "base":
        text = f"ends before turn {divergence.turn} of {baseline}" + (
            f": there it {base_actions}" if base_actions else ""
        )
    elif divergence.only == "head":
        text = f"continues where {baseline} ended: in turn {divergence.turn} it {actions or 'only spoke'}"
    else:
        there, now = f"there it {base_actions or 'did not'}", f"now it {actions or 'did not'}"
        text = f"diverges from {baseline} in turn {divergence.turn}: "
        text += f"{there}; {now}" if base_actions else f"{now}; {there}"
    text = f"{trial}{text}."
    return text[0].upper() + text[1:]


def _same(divergence: Divergence, baseline: str) -> str:
    """The words for equal actions throughout."""
    if divergence.unknown:
        listed = ", ".join(map(str, divergence.unknown))
        where = f"turn {listed}" if len(divergence.unknown) == 1 else f"turns {listed}"
        return f"same steps as {baseline} as far as known: one of them does not report {where}"
    if divergence.agent_differs is not None:
        return f"same steps as {baseline}; the answer changed in turn {divergence.agent_differs}"
    if divergence.user_differs is not None:
        return f"same steps and answers as {baseline}"
    return f"same conversation as {baseline}, word for word: only the verdict differs"


def _of_user(divergence: Divergence) -> str:
    if divergence.user_differs is None:
        return ""
    if divergence.user_differs == divergence.turn:
        return " The user's message differs there too."
    return f" The user's message differs in turn {divergence.user_differs}."


def _actions(deeds: Iterable[DivergentAction], show: Callable[[str], str]) -> str:
    by_kind: dict[LogicKind, list[str]] = {}
    for deed in deeds:
        by_kind.setdefault(deed.kind, []).append(_named(deed, show))
    return _listed([f"{_VERBS[kind]} {_listed(_few(names))}" for kind, names in by_kind.items()])


_VERBS = {
    LogicKind.WORKFLOW: "ran",
    LogicKind.PARAMETER: "understood",
    LogicKind.RULE: "applied",
    LogicKind.INTEGRATION: "called",
}


def _named(deed: DivergentAction, show: Callable[[str], str]) -> str:
    name = show(deed.name)
    if deed.value is None:
        return name
    value = deed.value if isinstance(deed.value, str) else json.dumps(deed.value, ensure_ascii=False)
    value = value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    if deed.kind is LogicKind.WORKFLOW:
        return f"{name} with {show(value)}" if deed.value else name
    return f"{name} (status {value})" if deed.kind is LogicKind.INTEGRATION else f"{name} as {show(value)}"


def _few(names: list[str]) -> list[str]:
    more = len(names) - _MOST_NAMED
    return names if more <= 0 else [*names[:_MOST_NAMED], f"{more} more"]


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
