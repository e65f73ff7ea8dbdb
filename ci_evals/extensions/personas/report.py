"""The part of reports about personas and languages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.personas.result import Personas, TraitCount, UserScore
from ci_evals.reports.story.judging import StudyReport
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.table import BLANK, UNKNOWN, Column, Table, table_of

RANK = 5
"""Its place among the reports of all extensions."""

NOBODY_PLAYED = (
    "Nobody played the personas of this run: the scripted user of an offline run has no traits and knows one "
    "language. Their tests were played with that user: they decide nothing, and the personas have no score. "
    "Use a model (set provider) to play them."
)
NO_LANGUAGES = (
    "The languages of this run have no score: the scripted user of an offline run knows one language. Use a "
    "model (set provider) to play them."
)


@dataclass(frozen=True)
class _Row:
    """A user with the suite's name, which is empty if the run has no other."""

    suite: str
    user: UserScore


def report(results: Results) -> StudyReport | None:
    """The report on personas and languages, if the run has any."""
    saved = results.study(Personas)
    if saved is None:
        return None
    scores = _of_tests(saved, results)
    personas: list[_Row] = []
    languages: list[_Row] = []
    for suite in scores.suites:
        name = suite.suite if len(scores.suites) > 1 else ""
        personas += [_Row(name, user) for user in suite.personas]
        languages += [_Row(name, user) for user in suite.languages]
    topic = "Personas" if personas else "Languages"
    remarks: list[str] = []
    warnings: tuple[str, ...] = ()
    if results.run.offline:
        if personas:
            warnings = (NOBODY_PLAYED,)
        elif not _are_scored(languages):
            warnings = (NO_LANGUAGES,)
        remarks += warnings
        personas = []
        languages = languages if _are_scored(languages) else []
    if personas:
        remarks.append(_remark(personas, "with", "persona"))
        warnings = tuple(_never_shown(personas))
    if languages:
        remarks.append(_remark(languages, "in", "language"))
    tables = tuple(_tables(personas, languages))
    return StudyReport(topic=topic, remark=" ".join(remarks), warnings=warnings, tables=tables)


def _of_tests(saved: Personas, results: Results) -> Personas:
    """Return the scores as the tests of a saved run have them, if it has its conversations.

    Only how often the traits were shown, which takes long to count, is taken as the file says it.
    """
    if not any(test.trials for test in results.tests):
        return saved
    from ci_evals.extensions.personas.persona_scores import persona_scores  # noqa: PLC0415

    computed = persona_scores(results, with_traits=False)
    if computed is None:
        return saved
    traits = {(suite.suite, user.name): user.traits for suite in saved.suites for user in suite.personas}
    suites = []
    for suite in computed.suites:
        personas = tuple(
            replace(user, traits=traits.get((suite.suite, user.name), ())) for user in suite.personas
        )
        suites.append(replace(suite, personas=personas))
    return replace(saved, suites=tuple(suites))


def _are_scored(rows: Sequence[_Row]) -> bool:
    """Return whether a persona or language has a score."""
    return any(row.user.name is not None and row.user.score is not None for row in rows)


def _remark(rows: Sequence[_Row], word: str, noun: str) -> str:
    users = [row.user for row in rows if row.user.name is not None]
    failing = [user for user in users if user.passed < user.tests]
    if not failing:
        return f"The agent passed {word} {numbers.count(len(users), noun)}."
    named = [f"“{user.name}” ({user.tests - user.passed:,} of {user.tests:,} tests)" for user in failing]
    return f"The agent did not pass {word} {numbers.listed(named, 5)}."


def _traits_shown(row: _Row) -> str:
    return ", ".join(_trait_shown(count) for count in row.user.traits)


def _trait_shown(count: TraitCount) -> str:
    if not count.conversations:
        return f"{count.trait} not measured"
    return f"{count.trait} {count.shown:,} of {count.conversations:,}"


def _never_shown(rows: Sequence[_Row]) -> Iterator[str]:
    """Yield a warning for each persona that showed a trait of its own in no conversation."""
    for row in rows:
        missing = [count.trait for count in row.user.traits if not count.shown]
        if missing:
            traits = numbers.listed(missing, 5)
            yield (
                f"The persona “{row.user.name}” never showed its trait {traits}: its tests do not show how "
                "the agent treats such a user. Read its conversations, or give the simulated user a larger "
                "model."
            )


_FIGURES: tuple[Column[_Row], ...] = (
    Column("suite", words=True, says_nothing=BLANK, show=lambda row: row.suite),
    Column("score", show=lambda row: numbers.score(row.user.score)),
    Column(
        "95 % interval",
        unbroken=True,
        says_nothing=UNKNOWN,
        show=lambda row: numbers.interval(row.user.interval),
    ),
    Column("tests passed", show=lambda row: f"{row.user.passed:,} of {row.user.tests:,}"),
)


def _name(row: _Row) -> str:
    return "no persona" if row.user.name is None else row.user.name


_TRAITS: Column[_Row] = Column(
    "conversations with the trait", words=True, says_nothing=BLANK, show=_traits_shown
)


def _tables(personas: Sequence[_Row], languages: Sequence[_Row]) -> Iterator[Table]:
    if personas:
        columns = (Column("user", words=True, show=_name), *_FIGURES, _TRAITS)
        yield replace(table_of("Personas", columns, personas, tone=_tone), in_console=True)
    if languages:
        columns = (Column("language", words=True, show=_name), *_FIGURES)
        yield replace(table_of("Languages", columns, languages, tone=_tone), in_console=True)


def _tone(row: _Row) -> Tone | None:
    return Tone.BAD if row.user.passed < row.user.tests else None
