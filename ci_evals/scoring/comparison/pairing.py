"""Pairs of the same tests in two runs, and the reasons why scores must not be compared."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

from ci_evals.domain.choices import CheckMode
from ci_evals.domain.results.comparison import TestName
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.verdict import Cause

_SHOWN = 40
"""Characters of a fingerprint that a reason shows."""


class TestPair(NamedTuple):
    """A test that is defined alike on both sides."""

    suite: str
    head: TestResult
    base: TestResult
    numbers: tuple[int, int] = (0, 0)
    """The numbers of the suite within this run and of the test within its suite, from 1."""


@dataclass(frozen=True)
class SuitePair:
    """A suite's tests on both sides."""

    name: str
    pairs: tuple[TestPair, ...] = ()
    new: tuple[TestName, ...] = ()
    removed: tuple[TestName, ...] = ()
    changed: tuple[TestName, ...] = ()
    reasons: tuple[str, ...] = ()
    """The reasons why its scores must not be compared."""
    base_score: float | None = None
    """The baseline's score of the whole suite."""


def pair(head: Results, base: Results) -> tuple[SuitePair, ...]:
    """All suites of both sides, those of this run first; suites and tests are paired by name."""
    of_each = partners(head.suites, base.suites)
    taken = {id(partner) for partner in of_each if partner}
    pairs = [
        _paired(suite.name, suite, partner, number)
        for number, (suite, partner) in enumerate(zip(head.suites, of_each, strict=True), start=1)
    ]
    removed = [_paired(suite.name, None, suite, 0) for suite in base.suites if id(suite) not in taken]
    return (*pairs, *removed)


def partners(here: Sequence[SuiteResult], there: Sequence[SuiteResult]) -> list[SuiteResult | None]:
    """The suite of the baseline for each suite of this run.

    Of several with one name those of one file belong together. The others do so in their order, but only if
    both sides have as many: else nobody knows which of them is new.
    """
    of_each: dict[int, SuiteResult] = {}
    for name in dict.fromkeys(suite.name for suite in here):
        ours, theirs = ([suite for suite in side if suite.name == name] for side in (here, there))
        left = []
        for suite in ours:
            same = next((one for one in theirs if PurePath(one.file) == PurePath(suite.file)), None)
            if same:
                of_each[id(suite)] = same
                theirs = [one for one in theirs if one is not same]
            else:
                left.append(suite)
        if len(left) == len(theirs):
            of_each |= dict(zip(map(id, left), theirs, strict=True))
    return [of_each.get(id(suite)) for suite in here]


def differences(head: Results, base: Results) -> Iterator[str]:
    """Yield the reasons why scores of these runs do not mean the same."""
    for side, whose in ((head, "this run"), (base, "the baseline")):
        if check := _failed_judge_check(side):
            yield f"the judge of {whose} did not pass its check: {check.model} {check.why or 'failed it'}"
    here, there = head.run.digests, base.run.digests
    providers = [side.run.provider or "the caller's own" for side in (head, base)]
    if providers[0] != providers[1]:
        yield _changed("provider of judge and simulated user", providers[1], providers[0])
    elif here.models != there.models and _models(head) == _models(base):
        yield "the models of judge or simulated user changed"
    if here.judge_prompt != there.judge_prompt:
        yield "the judge's prompt changed"
    if here.user_prompt != there.user_prompt:
        yield "the simulated user's prompt, or its audit (audit-user, auditModel), changed"
    if here.scoring != there.scoring:
        yield "the rules by which scores are computed changed"


def _by_name(items: Sequence[TestResult]) -> dict[str | tuple[str, int], TestResult]:
    """Tests by name; those of one name, as where a secret was taken out of it, by their order too."""
    named: dict[str | tuple[str, int], TestResult] = {item.name: item for item in items}
    if len(named) == len(items):
        return named
    named.clear()
    seen: Counter[str] = Counter()
    for item in items:
        number = seen[item.name]
        named[(item.name, number) if number else item.name] = item
        seen[item.name] += 1
    return named


def _paired(name: str, head: SuiteResult | None, base: SuiteResult | None, number: int) -> SuitePair:
    here, there = _by_name(head.tests if head else ()), _by_name(base.tests if base else ())
    both = [
        TestPair(name, test, there[key], (number, index))
        for index, (key, test) in enumerate(here.items(), start=1)
        if key in there
    ]

    def names(tests: Iterable[TestResult]) -> tuple[TestName, ...]:
        return tuple(TestName(suite=name, name=test.name) for test in tests)

    return SuitePair(
        name=name,
        pairs=tuple(pair for pair in both if pair.head.digest == pair.base.digest and _decides(pair.head)),
        new=names(test for key, test in here.items() if key not in there),
        removed=names(test for key, test in there.items() if key not in here),
        changed=names(pair.head for pair in both if pair.head.digest != pair.base.digest),
        reasons=tuple(_other_models(head, base)) if head and base else (),
        base_score=base.score if base else None,
    )


def _decides(test: TestResult) -> bool:
    """Return whether a test of this run may show a change: it was played here, and counts."""
    return test.quarantine is None and test.taken_from is None


def _other_models(head: SuiteResult, base: SuiteResult) -> Iterator[str]:
    if _voting(head) != _voting(base):
        yield _changed("judge", _voting(base), _voting(head))
    if head.user_model != base.user_model:
        yield _changed("simulated user", base.user_model, head.user_model)
    for name in sorted(head.fingerprint.keys() | base.fingerprint.keys()):
        here, there = (side.fingerprint.get(name, "unknown") for side in (head, base))
        if here != there:
            yield _changed(name, _short(there), _short(here))
    if head.embedding_model != base.embedding_model and _compares_meanings(head) and _compares_meanings(base):
        yield _changed("embedding model", base.embedding_model, head.embedding_model)


def _changed(what: str, there: str | None, here: str | None) -> str:
    return f"the {what} changed from {there or 'none'} to {here or 'none'}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _compares_meanings(suite: SuiteResult) -> bool:
    """Return whether a test of the suite wanted meanings compared, with or without a model."""
    findings = (finding for test in suite.tests for trial in test.trials for finding in trial.findings)
    return bool(suite.embedding_model) or any(finding.cause is Cause.NO_MODEL for finding in findings)


def _voting(suite: SuiteResult) -> str:
    models = " and ".join(suite.judge_panel) or suite.judge_model or "none"
    return f"{models} with {suite.judge_votes} votes" if suite.judge_votes > 1 else models


def _failed_judge_check(run: Results) -> JudgeCheck | None:
    """The check of a judge that did not pass, unless the run was to warn of it only."""
    if run.run.config.get("judgeCheck") == CheckMode.WARN:
        return None
    return next((check for check in run.judge_checks if not check.passed), None)


def _models(run: Results) -> list[tuple[object, ...]]:
    return [(suite.name, *suite.models.identity) for suite in run.suites]
