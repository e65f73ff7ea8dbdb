"""Names of settings in messages: `--min-score` on the command line, `min-score` in a workflow's step.

The core writes them as code in Python, `` `min_score=` `` or with a value `` `provider=offline` ``: users of
the library read them so.
"""

import re
from collections.abc import Callable, Mapping

from ci_evals.domain.options import Option

_SETTING = re.compile(r"`([a-z][a-z0-9_]*)=([^`\n]*)`")


def spell(text: str, options: Callable[[], Mapping[str, Option]], *, as_inputs: bool) -> str:
    """Return a message with the settings as its reader sets them.

    Args:
        text: The message.
        options: Returns all options by their names. What looks like a setting and is none stays as it is.
        as_inputs: True if the reader edits inputs of the action.
    """
    if not _SETTING.search(text):
        return text
    known = options()

    def spelled(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in known:
            return match[0]
        if as_inputs:
            return _as_input(known[name], value)
        return _as_option(known[name], value)

    return _SETTING.sub(spelled, text)


def _as_option(option: Option, value: str) -> str:
    return f"{option.label}={value}" if value else option.label


def _as_input(option: Option, value: str) -> str:
    """Return how a step sets it, in YAML."""
    return f"`{option.kebab}: {value}`" if value else f"`{option.kebab}`"
