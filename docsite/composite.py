"""The inputs and outputs of `run/action.yml`, which are those of `action.yml`."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMPOSITE = ROOT / "run/action.yml"

_PYTHON = """\
  # The runner
  python:
    description: >-
      Python to run ci-evals with, 3.11 or later. By default the one on the PATH, else one that the runner
      keeps.
    default: ""

"""


def text() -> str:
    """Return `run/action.yml` with the inputs and outputs that `action.yml` has now."""
    _, _, declared = (ROOT / "action.yml").read_text().partition("\ninputs:\n")
    inputs, _, rest = declared.partition("\noutputs:\n")
    outputs, _, _ = rest.partition("\nruns:\n")
    head, _, rest = COMPOSITE.read_text().partition("\ninputs:\n")
    steps = rest.partition("\nruns:\n")[2]
    # The outputs of a container action are taken by name; those of a step are named.
    named = re.sub(
        r"^  (\S+):\n((?:    .*\n)+)",
        r"  \1:\n\2    value: ${{ steps.run.outputs.\1 }}\n",
        f"{outputs}\n",
        flags=re.MULTILINE,
    )
    return f"{head}\ninputs:\n{_PYTHON}{inputs}\noutputs:\n{named}\nruns:\n{steps}"
