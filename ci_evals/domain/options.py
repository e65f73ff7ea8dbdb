"""Declarations of options, of which the command line, the action's inputs and the reference are made."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Any


class Group(StrEnum):
    """The headings of options in a command's help and in the reference, in their order."""

    SUITES = "Suites and selection"
    FILES = "Result files"
    AGENT = "Agent"
    MODELS = "Models"
    REPETITION = "Repetition"
    GATE = "Gate"
    BASELINE = "Baseline"
    OUTPUT = "Output"
    GITHUB = "GitHub"
    LIMITS = "Limits"
    OTHER = "Options"


class Names(Enum):
    """What the value of an option names, and so who may have written it.

    Every option of text or paths has one. Numbers, switches and closed sets of words name
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
    """Code to run, which may not be in a foreign checkout. The adapter is one only if it is code."""
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
class OptionSpec:
    """An option, except for its name, type and default: a field of settings with this annotation has them."""

    help: str
    """A line; further paragraphs are for the reference alone."""
    _: KW_ONLY
    group: Group = Group.OTHER
    metavar: str | None = None
    """By default the words of a closed set, `N` for a number, else the name."""
    minimum: float | None = None
    maximum: float | None = None
    names: Names | None = None
    """The kind of thing that a text or a path names in the workspace; all options of texts have one."""
    is_word: Callable[[str], bool] | None = None
    """Returns true for a value that names nothing in the workspace although others do, such as `auto`."""
    words: Callable[[], Iterable[str]] | None = None
    """Returns the values that a text can have, if it is of a closed set that extensions add to."""
    argument: bool = False
    """True for what stands on the command line without a name."""
    flag: str | None = None
    """The name on the command line, if it is not that of the field."""
    bare_value: str | None = None
    """The value of the option without one. Then a value stands behind an equals sign."""
    input_default: str | None = None
    """The default of the action's input, if it is not that of the option."""
    recorded: bool = True
    """False for what the results of a run do not say of it."""
    in_action: bool = True
    """False for what is of use only to a person, and so is no input of the action."""


@dataclass(frozen=True, kw_only=True)
class Option(OptionSpec):
    """An option of a command."""

    name: str
    """In snake_case, such as `min_score`."""
    kind: type[Any]
    """The type of the value; of each, if there may be several."""
    default: Any = None
    """None: not set."""
    required: bool = False
    many: bool = False
    """True if the value is a list."""
    secret: bool = False
    """True if the value is or holds a key."""

    @property
    def label(self) -> str:
        """The name on a command line, or the metavar of an argument."""
        if self.argument:
            return self.metavar or self.name.upper()
        return self.flag or f"--{self.kebab}"

    @property
    def setting(self) -> str:
        """The name in a message, which is spelled as its reader sets it: see `cli/settings/spelling`."""
        return f"`{self.name}=`"

    @property
    def kebab(self) -> str:
        """The name as the action's inputs have it: `base-url`."""
        return self.name.strip("_").replace("_", "-")

    @property
    def variable(self) -> str | None:
        """The name of the environment variable without its prefix; None for an argument."""
        return None if self.argument else self.name.strip("_").upper()

    @property
    def is_text(self) -> bool:
        """True if values are texts or paths, which name something."""
        return self.names is not None or self.kind in {str, Path}

    def named_by(self, value: Any) -> list[str]:
        """Return what a value names; nothing if it is not set, or is a word."""
        values = value if isinstance(value, list | tuple) else [value]
        texts = [str(one) for one in values if one]
        if self.is_word is None:
            return texts
        return [text for text in texts if not self.is_word(text)]

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
