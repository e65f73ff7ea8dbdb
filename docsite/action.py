"""The inputs of the actions, from the options of `run` and `gate`; and `run/action.yml` from `action.yml`."""

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from textwrap import fill

from ci_evals.cli.settings.inputs import declared, options_by_input
from ci_evals.domain.options import Group, Option

ROOT = Path(__file__).parent.parent
CONTAINER = ROOT / "action.yml"
COMPOSITE = ROOT / "run/action.yml"
_WIDTH = 112

_PYTHON = """\
  # The runner
  python:
    description: >-
      Python to run ci-evals with, 3.11 or later. By default the one on the PATH, else one that the runner
      keeps.
    default: ""
"""


def container() -> str:
    """Return `action.yml` with an input for each option of `run` and `gate`."""
    head, outputs, runs = _parts(CONTAINER)
    return f"{head}\ninputs:\n{_inputs()}\noutputs:\n{outputs}\nruns:\n{runs}"


def composite() -> str:
    """Return `run/action.yml` with the same inputs, and the outputs that `action.yml` has now."""
    _, outputs, _ = _parts(CONTAINER)
    head, _, runs = _parts(COMPOSITE)
    # The outputs of a container action are taken by name; those of a step are named.
    named = re.sub(
        r"^  (\S+):\n((?:    .*\n)+)",
        r"  \1:\n\2    value: ${{ steps.run.outputs.\1 }}\n",
        outputs,
        flags=re.MULTILINE,
    )
    return f"{head}\ninputs:\n{_PYTHON}\n{_inputs()}\noutputs:\n{named}\nruns:\n{runs}"


def _parts(action: Path) -> tuple[str, str, str]:
    """Return what stands before the inputs, the outputs, and what stands after them."""
    head, _, rest = action.read_text().partition("\ninputs:\n")
    outputs, _, runs = rest.partition("\noutputs:\n")[2].partition("\nruns:\n")
    return head, outputs, runs


def _inputs() -> str:
    """Return the inputs by the groups of their options, in the order in which those are declared."""
    options, defaults = options_by_input(), declared()
    lines: list[str] = []
    for group in Group:
        members = [name for name, option in options.items() if option.group is group]
        if not members:
            continue
        if lines:
            lines.append("")
        lines.append(f"  # {group}")
        for name in members:
            lines.extend(_input(name, options[name], defaults[name]))
    return "\n".join(lines) + "\n"


def _input(name: str, option: Option, default: str) -> Iterator[str]:
    yield f"  {name}:"
    text = " ".join(description(option).split())
    line = f"    description: {text}"
    if len(line) <= _WIDTH and ": " not in text:
        yield line
    else:
        yield "    description: >-"
        yield fill(
            text,
            _WIDTH,
            initial_indent=" " * 6,
            subsequent_indent=" " * 6,
            break_long_words=False,
            break_on_hyphens=False,
        )
    expression = default.startswith("${{")
    yield f"    default: {default}" if expression else f'    default: "{default}"'


def description(option: Option) -> str:
    """Return the help of an option as GitHub shows it: without dashes before the names of options."""
    text = option.help
    if issubclass(option.kind, Enum) and option.metavar is None:
        text += f" One of {', '.join(str(member.value) for member in option.kind)}."
    return text.replace("`", "").replace("--", "")
