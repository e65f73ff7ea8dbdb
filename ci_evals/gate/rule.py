"""A rule of the gate: its options, how it is checked, its words, and whether noise can fail it.

A rule is a module of `gate/rules` and a line in `RULES` there. Everything else that knows rules asks them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import JsonValue

from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.weakened import Weakening, WeakeningKind
from ci_evals.gate.selectors import Selector, SelectorKind

if TYPE_CHECKING:
    from ci_evals.domain.results.suite import SuiteResult
    from ci_evals.domain.suite import Suite
    from ci_evals.gate.gate_input import GatedRun
    from ci_evals.gate.noise import TrialNoise

RAISE_LIMIT = "Look at what takes the cost or the time. If it is meant, raise the limit."
IF_UNDECIDED_FAILED = "if undecided counts as failed"
"""The words for a score that decides and is not the one that is shown."""
NOT_JUDGED = "all of its criteria need a model, and there is none (provider offline)"
TIE = 1e-9
"""Points. Tolerance for rounding: a drop equal to the limit passes."""
_SELECTORS = {kind: f"the {kind}" for kind in SelectorKind} | {SelectorKind.LOGIC: "the AUI Logic"}


class Nature(Enum):
    """The subject of a rule. How the program treats its checks follows from it."""

    FLOOR = auto()
    """A score, which must be high enough."""
    TEST = auto()
    """A test, all of whose trials must pass."""
    REQUIREMENTS = auto()
    """The requirements of suites and gate, compared with the baseline. No trial changes them."""
    CHANGE = auto()
    """The change since the baseline. It may leave a run without a verdict, if there has to be a baseline."""
    LIMIT = auto()
    """A number of the run, such as its cost, which must be low enough."""
    ENDING = auto()
    """How the run ended."""


@dataclass(frozen=True)
class Rule(ABC):
    """A rule with its limits, which are its fields: keyword arguments of `Policy`."""

    kind: ClassVar[CheckKind]
    nature: ClassVar[Nature]
    options: ClassVar[tuple[Option, ...]] = ()
    noise_can_fail: ClassVar[bool] = False
    """True if the odds of the gate estimate how often noise alone fails it."""
    noise_word: ClassVar[str] = ""
    """The word for what the odds of the gate do not estimate; empty for the name of the check."""
    advice: ClassVar[str] = ""
    """What to do if no check but those of such rules fails."""

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if isinstance(limit, float) and not math.isfinite(limit):
                raise UsageError(f"`{field.name}={limit}`: it is not a limit; name a finite number")
        for option in self.options:
            if issubclass(option.kind, Enum):
                self._read_mode(option.name, option.kind)

    def _read_mode(self, name: str, modes: type[Enum]) -> None:
        """Read a mode that is given as text: compared by identity, it would be taken for another."""
        value = getattr(self, name)
        try:
            mode = modes(value)
        except ValueError:
            words = ", ".join(str(mode.value) for mode in modes)
            raise UsageError(f"`{name}={value}`: name one of {words}") from None
        object.__setattr__(self, name, mode)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Return the rule that options ask for. One that is not among `values` has its default.

        Raises:
            UsageError: a value cannot be read.
        """
        return cls(**{option.name: values[option.name] for option in cls.options if option.name in values})

    @abstractmethod
    def checks(self, run: "GatedRun") -> Iterator[GateCheck]:
        """Yield the checks of a run; none if the rule asks for nothing."""

    def warnings(self) -> Iterator[str]:
        """Yield warnings about limits that are probably not meant."""
        yield from ()

    def recorded(self) -> dict[str, JsonValue]:
        """Return the values of the options that make this rule, as results record them."""
        values = {option.name: getattr(self, option.name) for option in self.options}
        return {name: str(value) if isinstance(value, Enum) else value for name, value in values.items()}

    def parts(self) -> Iterator[Selector]:
        """Yield the parts of a run that have limits of their own. Most rules are about the whole run."""
        yield from ()

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield where this rule requires less than `before` did. Most rules are not compared."""
        del before
        yield from ()

    def check_names(self, suites: "Sequence[Suite | SuiteResult]") -> None:
        """Look whether some suite has each part of a run that the rule names. Most rules name none.

        Raises:
            UsageError: no suite has one: its limit would guard nothing.
        """
        del suites

    def redacted(self, redact: Callable[[str], str]) -> Self:
        """Return the rule with the parts that it names as they are named in results, without secrets."""
        del redact
        return self

    @classmethod
    def is_compared(cls) -> bool:
        """Return whether a looser limit weakens the gate."""
        return cls.loosened is not Rule.loosened

    @classmethod
    def failure(cls, check: GateCheck) -> str:
        """The reason why a check failed, in a clause for somebody who does not know its name."""
        if check.required is None or (check.seen is None and not fails_unscored(check, cls.nature)):
            return f"{check.name}: {check.note or 'nothing was seen'}"
        return cls.worded_failure(check, cls.decisive(check), cls.required(check))

    @classmethod
    def decisive(cls, check: GateCheck) -> str:
        """The value that decided a failed check, for a sentence: without its interval."""
        return cls.seen(replace(check, interval=None))

    @classmethod
    @abstractmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """The same for a check that saw a value: `the run cost $2, at most $1 allowed`."""

    @classmethod
    def required(cls, check: GateCheck) -> str:
        """The requirement of a check, in words and its own unit; empty if it has none."""
        return "" if check.required is None else cls.worded_limit(check.required)

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """The same for a limit: `at most 5`."""
        return f"at most {numbers.plain(limit)}"

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The value that a check saw. If undecided verdicts matter, the one that decides."""
        if check.seen is None:
            return "" if check.required is None else numbers.NONE
        if wanting(check):
            return f"{numbers.least(check.seen_if_undecided_failed, check.required)} {IF_UNDECIDED_FAILED}"
        return numbers.least(check.seen, check.required)

    @classmethod
    def beyond_odds(cls, check: GateCheck) -> str:
        """The words for what the odds of the gate do not estimate; empty for the check's name."""
        del check
        return cls.noise_word

    @classmethod
    def fails_by_noise(cls, check: GateCheck, noise: "TrialNoise") -> list[bool] | None:
        """Return, for each simulated run, whether it fails the check; None where noise cannot fail it."""
        del check, noise
        return None

    @classmethod
    def is_near(cls, check: GateCheck) -> bool:
        """Return whether the value is near the threshold: within the interval of what was seen."""
        if check.interval is None or check.required is None:
            return False
        return check.interval.low <= check.required <= check.interval.high

    @classmethod
    def nearness(cls, check: GateCheck) -> str:
        """The reason why a check is near its threshold."""
        low, high = (check.interval.low, check.interval.high) if check.interval else (0, 100)
        return f"{check.name}: {check.required:g} lies within {low:.1f} to {high:.1f}"


class LimitRule(Rule):
    """A rule on a number of the run, which must be low enough."""

    nature: ClassVar[Nature] = Nature.LIMIT

    def limit_check(
        self, run: "GatedRun", allowed: float | None, seen: float | None, unknown: str | None = None
    ) -> Iterator[GateCheck]:
        """Yield the check of a limit, if there is one. A number that is not known fails."""
        if allowed is None:
            return
        passed = seen is not None and seen <= allowed
        note = unknown if seen is None else None
        yield run.whole.check(self.kind, self.kind, allowed, seen=seen, passed=passed, note=note)


def loosened_option(option: str, before: str, now: str | None) -> Weakening:
    """Return a weakening of an option of the gate. `now` is None if it has no limit any more."""
    return Weakening(kind=WeakeningKind.LIMIT_LOOSENED, option=option, before=before, now=now)


def fails_unscored(check: GateCheck, nature: Nature) -> bool:
    """Return whether a floor failed by verdicts that are undecided and count as failed, without any other."""
    no_score = check.seen is None and check.seen_if_undecided_failed is not None
    return no_score and check.passed is False and nature is Nature.FLOOR


def whole_points(check: GateCheck, show: Callable[[float], str]) -> str:
    """The score, or the drop, that decided a check: in whole points, for a sentence."""
    if wanting(check):
        return f"{show(check.seen_if_undecided_failed or 0)} {IF_UNDECIDED_FAILED}"
    return show(check.seen or 0)


def wanting(check: GateCheck) -> bool:
    """Return whether undecided verdicts make a difference to the check."""
    return check.seen_if_undecided_failed is not None and check.seen_if_undecided_failed != check.seen


def part_of(check: GateCheck) -> str:
    """The part of the run that a check is about, in words; empty for the whole run."""
    if check.test is not None:
        return f" of the test {test_of(check)}"
    if check.suite is not None:
        return f" of the suite “{check.suite}”"
    if selector := Selector.read(check.selector or ""):
        return f" of {_SELECTORS[selector.kind]} “{selector.name}”"
    return ""


def test_of(check: GateCheck) -> str:
    """The test that a check is about, with its suite."""
    if check.suite is None:
        return f"“{check.test}”"
    return f"“{check.test}” of the suite “{check.suite}”"


def rests_on(compared: int, tests: int) -> str | None:
    """The number of tests that a check rests on, unless it is all of them."""
    return f"on {compared} of {tests} tests" if compared < tests else None


def joined(*notes: str | None) -> str | None:
    """Return notes as one; None if there is none."""
    return "; ".join(note for note in notes if note) or None
