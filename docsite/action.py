"""The inputs of the actions and of the workflow to call, from the options of `run` and `gate`."""

import re
from collections.abc import Collection, Iterator
from enum import Enum
from pathlib import Path
from textwrap import indent, wrap

import yaml

from ci_evals.cli.settings.inputs import declared, options_by_input
from ci_evals.domain.options import Group, Option

ROOT = Path(__file__).parent.parent
CONTAINER = ROOT / "action.yml"
COMPOSITE = ROOT / "run/action.yml"
WORKFLOW = ROOT / ".github/workflows/evals.yml"
NOT_OF_WORKFLOW = frozenset({"shard"})
"""The inputs that the workflow lacks: each shard would replace the baseline, and no job would merge them."""

SECRETS_OR_INPUTS = frozenset({"against", "agent-headers"})
"""The secrets that are also inputs, since they may hold no key."""

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


def workflow() -> str:
    """Return `evals.yml` with the same inputs, keys among them as secrets, and the same outputs."""
    text = WORKFLOW.read_text()
    options = {name: option for name, option in options_by_input().items() if name not in NOT_OF_WORKFLOW}
    secrets = [name for name, option in options.items() if option.secret]
    inputs = {name for name in options if name not in secrets or name in SECRETS_OR_INPUTS}
    outputs = [*yaml.safe_load(CONTAINER.read_text())["outputs"].items()]
    text = _replaced(text, "inputs", _inputs(inputs, type_line="    type: string"), 4)
    text = _replaced(text, "secrets", _secrets(options, secrets), 6)
    text = _replaced(text, "outputs", _outputs(outputs), 6)
    jobs_outputs = "".join(f"{name}: ${{{{ steps.evals.outputs.{name} }}}}\n" for name, _ in outputs)
    text = _replaced(text, "job", jobs_outputs, 6)
    passed_on = "".join(f"{name}: {_value(name, secrets)}\n" for name in options)
    return _replaced(text, "with", passed_on, 10)


def _replaced(text: str, part: str, lines: str, depth: int) -> str:
    """Return `text` with the lines of a part between its two marks, indented by `depth` spaces."""
    pattern = rf"(^ *# {part}: written by make reference\n).*?(^ *# end of (?:the )?{part}\n)"
    lines = indent(lines.strip("\n") + "\n", " " * depth)
    replaced, count = re.subn(
        pattern, lambda marks: marks[1] + lines + marks[2], text, flags=re.MULTILINE | re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{WORKFLOW} has {count} parts {part!r} between marks")
    return replaced


def _secrets(options: dict[str, Option], names: list[str]) -> str:
    lines = []
    for name in names:
        lines.extend([*_described(name, description(options[name])), "  required: false"])
    text = (
        "Variables that the suites or the agent read, such as further keys: a line NAME=value each. "
        "Values of 8 characters or more are masked in the job's log."
    )
    lines.extend([*_described("variables", text), "  required: false"])
    return "\n".join(lines)


def _outputs(outputs: list[tuple[str, dict[str, str]]]) -> str:
    lines: list[str] = []
    for name, facts in outputs:
        lines.extend(_described(name, facts["description"]))
        lines.append(f"  value: ${{{{ jobs.evals.outputs.{name} }}}}")
    return "\n".join(lines)


def _value(name: str, secrets: list[str]) -> str:
    """Return the expression that passes an input or a secret of the workflow on to the action."""
    if name == "github-token":
        return "${{ secrets.github-token || github.token }}"
    if name in SECRETS_OR_INPUTS:
        return f"${{{{ secrets.{name} || inputs.{name} }}}}"
    kind = "secrets" if name in secrets else "inputs"
    return f"${{{{ {kind}.{name} }}}}"


def _parts(action: Path) -> tuple[str, str, str]:
    """Return what stands before the inputs, the outputs, and what stands after them."""
    head, _, rest = action.read_text().partition("\ninputs:\n")
    outputs, _, runs = rest.partition("\noutputs:\n")[2].partition("\nruns:\n")
    return head, outputs, runs


def _inputs(only: Collection[str] | None = None, *, type_line: str = "") -> str:
    """Return the inputs by the groups of their options, in the order in which those are declared.

    Args:
        only: The names of those that are wanted; None for all.
        type_line: A line for each that names its type.
    """
    options, defaults = options_by_input(), declared()
    lines: list[str] = []
    for group in Group:
        members = [name for name, option in options.items() if option.group is group]
        if only is not None:
            members = [name for name in members if name in only]
        if not members:
            continue
        if lines:
            lines.append("")
        lines.append(f"  # {group}")
        for name in members:
            lines.extend(f"  {line}" for line in _described(name, description(options[name])))
            if type_line:
                lines.append(type_line)
            default = defaults[name]
            expression = default.startswith("${{")
            lines.append(f"    default: {default}" if expression else f'    default: "{default}"')
    return "\n".join(lines) + "\n"


def _described(name: str, text: str) -> Iterator[str]:
    """Yield the lines of an entry and its description."""
    yield f"{name}:"
    text = " ".join(text.split())
    line = f"  description: {text}"
    if len(line) <= _WIDTH - 2 and ": " not in text:
        yield line
        return
    yield "  description: >-"
    yield from wrap(
        text,
        _WIDTH - 2,
        break_long_words=False,
        break_on_hyphens=False,
        initial_indent="    ",
        subsequent_indent="    ",
    )


def description(option: Option) -> str:
    """Return the help of an option as GitHub shows it: without dashes before the names of options."""
    text = option.help
    if issubclass(option.kind, Enum) and option.metavar is None:
        text += f" One of {', '.join(str(member.value) for member in option.kind)}."
    return text.replace("`", "").replace("--", "")
