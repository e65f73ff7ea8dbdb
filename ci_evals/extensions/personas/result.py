"""The scores of a run by persona and language, as `_results.json` has them."""

from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain.base import Amount, CleanText, Interval, Percent, ResultPart
from ci_evals.domain.results.studies import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class TraitCount(ResultPart):
    """How often a persona showed a trait."""

    trait: CleanText
    conversations: Amount
    """Conversations that could show it, of the first 200."""
    shown: Amount
    """Conversations that did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScore(ResultPart):
    """The score of the tests of one persona or language. Tests in quarantine are left out."""

    name: str | None
    """The persona or the language; null for the same tests as they are written."""
    score: Percent | None
    """Null if no trial was scored, and for users of an offline run whom nobody played."""
    interval: Interval | None
    """95 %; tests of one cluster count as one."""
    tests: Amount
    passed: Amount
    failed: Amount
    undecided: Amount
    """Tests that neither passed nor failed."""
    traits: tuple[TraitCount, ...] = ()
    """Empty for languages, and in an offline run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePersonas(ResultPart):
    """The scores of a suite that has personas or languages."""

    suite: str
    personas: tuple[UserScore, ...]
    """First that of the same tests as they are written, if the run has any. Empty without personas."""
    languages: tuple[UserScore, ...] = ()
    """Likewise, of tests in other languages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Personas(Study):
    """The scores of a run by persona and language, computed from its tests whenever these are scored."""

    KEY: ClassVar[str] = "personas"

    suites: tuple[SuitePersonas, ...]


KINDS = (Personas,)
"""The types of what is kept in the results of a run."""
