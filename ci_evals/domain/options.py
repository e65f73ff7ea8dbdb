"""Declarations of options, of which the command line, the action's inputs and the reference are made."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Names(Enum):
    """What the value of an option names, and so who may have written it.

    Every option of text or paths has one in its annotation. Numbers, switches and closed sets of words name
    nothing. In a job with secrets, a *foreign* checkout may hold somebody else's code.
    """

    TEXT = auto()
    """Nothing in the workspace: a name, a model, a key, a pattern."""
    ADDRESS = auto()
    """An address. Whoever wrote the command chose it."""
    INPUT = auto()
    """A file or folder that decides where keys go, what may be spent, or what passes.

    It may not be in a foreign checkout.
    """
    PROGRAM = auto()
    """Code to run, which may not be in a foreign checkout. For `--adapter` only if it is code."""
    AGENTS = auto()
    """Lines with the options of a further agent. Each follows the rule of the option of its name."""
    SUITES = auto()
    """Suites. In a foreign checkout they may name no endpoint, no variable and no code."""
    EVIDENCE = auto()
    """Results to decide on. In a foreign checkout they must come from this job: git may not track them."""
    SUBJECT = auto()
    """Files that are shown, converted or judged again. They decide nothing."""
    OUTPUT = auto()
    """A file or folder to write. No link may lead elsewhere: see `cli/files/output_paths`."""
    CACHE = auto()
    """Signed answers, which may not be in a foreign checkout: see `cli/run/judge_cache`."""


@dataclass(frozen=True)
class Option:
    """An option with a value. A text of any length names something: `names` says what."""

    name: str
    """In snake_case, such as `min_score`."""
    kind: type[Any]
    help: str
    """A line; further paragraphs are for the reference alone."""
    default: Any = None
    """None: not set."""
    metavar: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    names: Names | None = None
    group: str = "Gate"
    """The heading in the help of a command."""

    def accepts(self, value: Any) -> bool:
        """Return whether a recorded value is one that the option can have. None is not: it is no value."""
        if issubclass(self.kind, Enum):
            return value in [member.value for member in self.kind]
        kinds = (int, float) if self.kind is float else (self.kind,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        if self.minimum is not None and not value >= self.minimum:
            return False
        return self.maximum is None or value <= self.maximum
