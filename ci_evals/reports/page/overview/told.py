"""What went wrong in a run as the page tells it: plain texts and addresses, made safe to be shown."""

from dataclasses import dataclass

from ci_evals.reports.page.overview.places import Place


@dataclass(frozen=True)
class Criterion:
    """A criterion that failed."""

    text: str
    kind: str
    times: str
    """In how many of its trials; empty where there is one."""
    reason: str
    doubt: str = ""
    """Why it is to be trusted less; empty where it is not."""
    where: str = ""
    """The turn that shows it: `turn 4 of trial 1`."""
    href: str | None = None


@dataclass(frozen=True)
class Quote:
    """A turn that shows a failure."""

    where: str
    href: str | None
    user: str
    agent: str


@dataclass(frozen=True)
class Story:
    """A test that fails, told whole."""

    place: Place
    outcome: str
    scores: str
    """`100.0 → 33.3`; empty where it was not compared."""
    remarks: tuple[str, ...]
    since: str | None
    divergence: str | None
    """Where its conversation parts from the baseline's, in a sentence."""
    beside: str | None
    """The address of the turn in which it parts, with the baseline's beside it."""
    criteria: tuple[Criterion, ...]
    more: int
    """Failed criteria that are not shown."""
    quotes: tuple[Quote, ...]


@dataclass(frozen=True)
class Line:
    """A test in a line."""

    place: Place
    outcome: str
    said: str
    """What is to be said of it in short: scores, remarks."""
    why: str
    """The criterion that failed and its reason; may be empty."""


@dataclass(frozen=True)
class Part:
    """Tests, or causes, with a title."""

    id: str
    title: str
    told: str
    stories: tuple[Story, ...] = ()
    lines: tuple[Line, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Trouble:
    """One thing that went wrong, however many trials or verdicts it spoilt."""

    outcome: str
    what: str
    why: str
    places: tuple[Place, ...]
    more: int


@dataclass(frozen=True)
class Broken:
    """All of it, in the order of reading."""

    parts: tuple[Part, ...]
    troubles: tuple[Trouble, ...]
    calm: str | None
    """What is said where nothing failed."""
    gone: str | None
    """What of the agent's logic fired in the baseline, and not now: often the cause of it all."""
