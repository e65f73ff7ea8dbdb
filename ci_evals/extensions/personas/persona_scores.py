"""The scores of a run by persona and language, and how often its users showed their traits."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import UserSource
from ci_evals.extensions.personas.measures import Message, Played, shows
from ci_evals.extensions.personas.result import Personas, SuitePersonas, TraitCount, UserScore
from ci_evals.extensions.personas.suite_keys import LANGUAGE_TAG, PERSONA_TAG, has_other_user
from ci_evals.extensions.personas.traits import TRAITS
from ci_evals.scoring import numbers
from ci_evals.scoring.scores import ScoreRule, deciding

_MOST_CONVERSATIONS = 200
"""Conversations in which a trait is looked for: enough for a share."""


def persona_scores(results: Results, *, with_traits: bool = True) -> Personas | None:
    """The scores by persona and language; None if all tests that have any are in quarantine."""
    offline = results.run.offline
    count_traits = with_traits and not offline
    suites = []
    for suite in results.suites:
        personas = _scores_by_tag(suite, PERSONA_TAG, offline=offline, count_traits=count_traits)
        languages = _scores_by_tag(suite, LANGUAGE_TAG, offline=offline)
        if personas or languages:
            suites.append(SuitePersonas(suite=suite.name, personas=personas, languages=languages))
    return Personas(suites=tuple(suites)) if suites else None


def _scores_by_tag(
    suite: SuiteResult, prefix: str, *, offline: bool, count_traits: bool = False
) -> tuple[UserScore, ...]:
    """Return the scores by tags with this beginning, and first that of the same tests as they are written."""
    tests = deciding(suite.tests)
    by_user: dict[str, list[TestResult]] = {}
    names = set()
    for test in tests:
        user = _user_of(test, prefix)
        if user is not None:
            by_user.setdefault(user, []).append(test)
            names.add(test.name.removesuffix(f" ({user})"))
    plain = [test for test in tests if test.name in names and not has_other_user(test)]
    scores = [_score_of(None, plain, offline=offline)] if by_user and plain else []
    for user, own in by_user.items():
        score = _score_of(user, own, offline=offline, of_personas=prefix == PERSONA_TAG)
        if count_traits:
            score = replace(score, traits=tuple(_trait_counts(own)))
        scores.append(score)
    return tuple(scores)


def _user_of(test: TestResult, prefix: str) -> str | None:
    """Return the persona or language that made a test. A persona may also have a language."""
    if not has_other_user(test):
        return None
    kinds = (PERSONA_TAG, LANGUAGE_TAG)
    tag = next((tag for kind in kinds for tag in test.tags if tag.startswith(kind)), "")
    return tag.removeprefix(prefix) if tag.startswith(prefix) else None


def _user_speaks(test: TestResult) -> bool:
    """Return whether the simulated user wrote a message of the test."""
    return any(turn.user_source is UserSource.AUTO for trial in test.trials for turn in trial.turns)


def _score_of(
    name: str | None, tests: list[TestResult], *, offline: bool, of_personas: bool = False
) -> UserScore:
    group = numbers.group_of(name or "", tests, ScoreRule(offline=offline))
    is_other = name is not None and (of_personas or any(map(_user_speaks, tests)))
    nobody_played = offline and is_other
    passed = sum(test.passed for test in tests)
    failed = sum(test.outcome is TestOutcome.FAILED for test in tests)
    return UserScore(
        name=name,
        score=None if nobody_played else group.score,
        interval=None if nobody_played else group.interval,
        tests=len(tests),
        passed=passed,
        failed=failed,
        undecided=len(tests) - passed - failed,
    )


def _trait_counts(tests: Iterable[TestResult]) -> Iterator[TraitCount]:
    for name, trait in TRAITS.items():
        having = [test for test in tests if trait.prompt in test.guidelines]
        trials = ((test, trial) for test in having for trial in test.trials if trial.counts)
        verdicts = [shows(name, _played(test, trial)) for test, trial in islice(trials, _MOST_CONVERSATIONS)]
        known = [verdict for verdict in verdicts if verdict is not None]
        if verdicts:
            yield TraitCount(trait=name, conversations=len(known), shown=sum(known))


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
