"""The scores of a run by persona, and how often its users showed their traits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import ScoreGroup, SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import UserSource
from ci_evals.extensions.personas.measures import Message, Played, shows
from ci_evals.extensions.personas.suite_keys import LANGUAGE_TAG, PERSONA_TAG
from ci_evals.extensions.personas.traits import TRAITS
from ci_evals.reports.story.judging import StudyReport
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.table import BLANK, UNKNOWN, Column, Room, Table, table_of
from ci_evals.scoring import numbers as scored
from ci_evals.scoring.scores import ScoreRule, deciding

AS_WRITTEN = "as written"
"""The name of the user whom a test has without a persona."""
_MOST_CONVERSATIONS = 200
"""Conversations in which a trait is looked for: enough for a share."""


@dataclass(frozen=True)
class PersonaScore:
    """The tests of one user."""

    suite: str
    """Empty if the run has no other."""
    user: str
    tests: Sequence[TestResult]
    group: ScoreGroup
    trait_counts: tuple[tuple[str, int, int], ...]
    """For each trait in how many conversations the user showed it, of those that could show it."""

    @property
    def failed(self) -> Sequence[TestResult]:
        """The tests that did not pass."""
        return [test for test in self.tests if not test.passed]


def persona_report(results: Results) -> StudyReport | None:
    """The report on personas; None if all tests that have any are in quarantine."""
    rows: list[PersonaScore] = []
    languages: list[PersonaScore] = []
    for suite in results.suites:
        name = suite.name if len(results.suites) > 1 else ""
        rows += scores_by_tag(suite, name, PERSONA_TAG, offline=results.run.offline)
        languages += scores_by_tag(suite, name, LANGUAGE_TAG, offline=results.run.offline)
    if not rows:
        return None
    return StudyReport(
        topic="Personas", remark=_remark(rows, results), tables=tuple(_tables(rows, languages))
    )


def scores_by_tag(suite: SuiteResult, name: str, prefix: str, *, offline: bool) -> list[PersonaScore]:
    """Return the scores by tags with this beginning, and first that of the same tests as they are written.

    `name` is what rows call the suite.
    """
    tests = deciding(suite.tests)
    by_user: dict[str, list[TestResult]] = {}
    for test in tests:
        for tag in test.tags:
            if tag.startswith(prefix):
                by_user.setdefault(tag.removeprefix(prefix), []).append(test)
    if not by_user:
        return []
    tasks = {test.cluster for own in by_user.values() for test in own if test.cluster}
    varied = {id(test) for own in by_user.values() for test in own}
    plain = [test for test in tests if test.cluster in tasks and id(test) not in varied]
    users = {AS_WRITTEN: plain} if plain else {}
    rule = ScoreRule(offline=offline)
    return [
        PersonaScore(name, user, own, scored.group_of(user, own, rule), tuple(_trait_counts(own)))
        for user, own in (users | by_user).items()
    ]


def _trait_counts(tests: Iterable[TestResult]) -> Iterator[tuple[str, int, int]]:
    for name, trait in TRAITS.items():
        having = [test for test in tests if trait.prompt in test.guidelines]
        trials = [(test, trial) for test in having for trial in test.trials if trial.counts]
        verdicts = [shows(name, _played(test, trial)) for test, trial in trials[:_MOST_CONVERSATIONS]]
        known = [verdict for verdict in verdicts if verdict is not None]
        if verdicts:
            yield name, sum(known), len(known)


def _played(test: TestResult, trial: TrialResult) -> Played:
    messages = []
    before = ""
    for turn in trial.turns:
        if turn.user_source is UserSource.AUTO:
            messages.append(Message(turn.user, before))
        before = turn.agent
    facts = [str(value) for value in test.user_info.values() if isinstance(value, str | int | float)]
    replies = [turn.agent for turn in trial.turns]
    return Played(messages, [fact for fact in facts if len(fact) > 1], " ".join([test.guidelines, *replies]))


def _remark(rows: Sequence[PersonaScore], results: Results) -> str:
    if results.run.offline:
        return "Nobody played these users: the scripted user of an offline run has no traits."
    of_personas = [row for row in rows if row.user != AS_WRITTEN]
    failing = [row for row in of_personas if row.failed]
    if not failing:
        return f"The agent passed with {numbers.count(len(of_personas), 'persona')}."
    named = [f"“{row.user}” ({len(row.failed):,} of {len(row.tests):,} tests)" for row in failing]
    return f"The agent did not pass with {numbers.listed(named, 5)}."


def _traits_shown(row: PersonaScore) -> str:
    return ", ".join(f"{name} {shown:,} of {of:,}" for name, shown, of in row.trait_counts)


_FIGURES: tuple[Column[PersonaScore], ...] = (
    Column("suite", words=True, room=Room.SOME, says_nothing=BLANK, show=lambda row: row.suite),
    Column("score", show=lambda row: numbers.score(row.group.score)),
    Column(
        "95 %", unbroken=True, says_nothing=UNKNOWN, show=lambda row: numbers.interval(row.group.interval)
    ),
    Column("passed", show=lambda row: f"{len(row.tests) - len(row.failed):,} of {len(row.tests):,}"),
)
_USER: Column[PersonaScore] = Column("user", words=True, show=lambda row: row.user)
_LANGUAGE: Column[PersonaScore] = Column("language", words=True, show=lambda row: row.user)
_TRAITS: Column[PersonaScore] = Column(
    "conversations with the trait", words=True, says_nothing=BLANK, show=_traits_shown
)


def _tables(personas: Sequence[PersonaScore], languages: Sequence[PersonaScore]) -> Iterator[Table]:
    yield table_of("Personas", (_USER, *_FIGURES, _TRAITS), personas, tone=_tone)
    if languages:
        yield table_of("Languages", (_LANGUAGE, *_FIGURES), languages, tone=_tone)


def _tone(row: PersonaScore) -> Tone | None:
    return Tone.BAD if row.failed else None
