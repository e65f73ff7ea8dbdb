"""Variables `CI_EVALS_…` that no option has.

A gate that ignores `CI_EVALS_MIN_SCOR=95` would look as if it held.
"""

import difflib
import re
from collections.abc import Collection, Mapping

from ci_evals.cli.settings.successors import refuse_variable
from ci_evals.cli.settings.table import ENV_PREFIX
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Option

OTHERS = frozenset({"GITLAB_TOKEN", "INPUTS", "PIP_CACHE", "PROCESS"})
"""Variables without an option: a token, what `run/action.yml` hands over, and the mark of processes."""

_OURS = re.compile(r"CI[_-]?EVALS?[_-]+(?P<option>.+)", re.IGNORECASE)
_NEAR = 0.8
"""From this similarity on, a name is a misspelling rather than a variable of somebody else's."""


def variables_of(options: Mapping[str, Option]) -> frozenset[str]:
    """Return the variables of all options, without the prefix."""
    return OTHERS.union(option.variable for option in options.values() if option.variable)


def check_variables(environ: Mapping[str, str], known: Collection[str]) -> tuple[str, ...]:
    """Return a warning for each variable that no option has.

    Raises:
        UsageError: with every variable whose option is gone, or that is almost the name of an option.
    """
    problems, warnings = [], []
    for name in sorted(environ):
        match = _OURS.fullmatch(name)
        if match is None or not environ[name].strip() or name.removeprefix(ENV_PREFIX) in known:
            continue
        if sentence := refuse_variable(name, ENV_PREFIX):
            problems.append(sentence)
        elif meant := _nearest(match["option"], known):
            problems.append(
                f"{name}: there is no such variable. Did you mean {ENV_PREFIX}{meant}? Rename or unset it."
            )
        elif name.startswith(ENV_PREFIX):
            warnings.append(f"{name}: no option has this variable, so it sets nothing")
    if problems:
        raise UsageError("\n".join(problems))
    return tuple(warnings)


def _nearest(option: str, known: Collection[str]) -> str | None:
    """Return the option that a name was meant for, None if it was meant for none."""
    name = option.upper().replace("-", "_")
    if any(re.fullmatch(rf"{one}(_.+|\d+)", name) for one in known):
        return None  # AGENT_KEY_2, which a suite reads
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)), None)
