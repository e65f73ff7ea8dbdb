"""The tests that fail, each with what failed, why, and the turn that shows it; or in a line."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, divergence, highlights, labels, reliability
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.markdown.sections import Rank, Section, folded, listing, section

_CRITERIA = 3
"""Failed criteria of a test that are shown; its own report has all."""
_QUOTED = 2
"""Turns of a test that are quoted."""
_FEW = 3
"""Failures that are shown at once."""
_NAME = 80
"""Characters of what an agent names."""
_BRIEF = 160
"""Characters of a reason in the list of those that are not shown whole."""
_CONFIRMED = "confirmed"


@dataclass(frozen=True)
class Failure:
    """A test that fails, as this run has it or, where it does not, as the comparison tells."""

    place: str
    """Its suite, where there are several, and its name; sanitised."""
    test: TestResult | None = None
    change: TestChange | None = None
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Of its criteria those that are to be trusted less, and why; plain."""


@dataclass(frozen=True)
class Said:
    """A turn that shows a failure; not yet sanitised."""

    turn: int
    trial: int | None
    """None where there is but one."""
    user: str
    agent: str


def newly(results: Results) -> tuple[Failure, ...]:
    """The tests that passed in the baseline and do not now: critical ones first, then the worst."""
    found = results.comparison
    if found is None:
        return ()
    waiting: dict[tuple[str, str], deque[TestResult]] = defaultdict(deque)
    for suite in results.suites:
        for test in suite.tests:
            if test.outcome is not TestOutcome.PASSED:
                waiting[suite.name, test.name].append(test)
    many, doubts = len(found.suites) > 1, reliability.CriterionWarnings(results)
    out = []
    for became in change.failing(found):
        known = waiting[became.suite, became.name]
        named = place(became.suite, became.name, many=many)
        doubted = doubts.of_test(became.suite, became.name)
        out.append(Failure(named, known.popleft() if known else None, became, doubted))
    return _critical_first(out)


def heading(results: Results, failures: Sequence[Failure]) -> tuple[str, str]:
    """What stands above the newly failing tests, and what a reader must know of them; plain."""
    tests = [failure.change for failure in failures if failure.change]
    undecided = bool(change.not_failed(results))
    title = numbers.count(len(tests), "newly failing test")
    if undecided:
        does = "does" if len(tests) == 1 else "do"
        title = f"{numbers.count(len(tests), 'test')} that passed in the baseline {does} not pass now"
    return title, change.on_failing(tests, titled=undecided)


def of_newly(results: Results, failures: Sequence[Failure]) -> tuple[Section, ...]:
    """The section on them."""
    if not failures:
        return ()
    title, told = heading(results, failures)
    noun = "of these tests" if change.not_failed(results) else "newly failing test"
    return listing(
        _section("the newly failing tests", f"### {title}\n\n{told}", failures, noun), _FEW, Rank.REST
    )


def of_failed(results: Results, shown: Sequence[Failure] = ()) -> tuple[Section, ...]:
    """The section on the failed tests that are not among `shown`, the newly failing ones.

    Where the gate holds it is folded: what the gate allows is not what a reader must see first.
    """
    failures = others(results, shown)
    if not failures:
        return ()
    title = numbers.count(len(failures), "more failed test" if shown else "failed test")
    why = on_others(failures) if shown else ""
    whole = _section("the failed tests", why, failures, "failed test")
    if highlights.run_outcome(results) in {RunOutcome.PASSED, RunOutcome.UNCHECKED}:
        allowed = title if shown else f"{title} that the gate allows"
        return (folded(allowed, replace(whole, rank=Rank.REST)),)
    whole = replace(whole, head=f"### {title}\n\n{why}")
    return listing(whole, _FEW, Rank.REST)


def others(results: Results, shown: Sequence[Failure]) -> tuple[Failure, ...]:
    """The failed tests that are not among `shown`, critical ones first."""
    told, doubts = {id(failure.test) for failure in shown}, reliability.CriterionWarnings(results)
    return _critical_first(
        [
            Failure(
                place(suite.name, test.name, many=len(results.suites) > 1),
                test,
                doubts=doubts.of_test(suite.name, test.name),
            )
            for suite, test in highlights.tests_of(results, TestOutcome.FAILED)
            if id(test) not in told
        ]
    )


def on_others(failures: Sequence[Failure]) -> str:
    """What a reader must know of those that are told after the newly failing tests."""
    it, was = ("It", "was") if len(failures) == 1 else ("They", "were")
    return f"{it} did not pass in the baseline either, or {was} not compared."


def _critical_first(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """A critical test fails the gate alone, however little its score fell."""
    return tuple(sorted(failures, key=lambda failure: not (failure.test and failure.test.critical)))


def place(suite: str, test: str, *, many: bool) -> str:
    """How a test is named, as Markdown."""
    name = sanitize.inline(test, 160)
    return f"{sanitize.inline(suite, 100)} › {name}" if many else name


def _section(name: str, head: str, failures: Sequence[Failure], noun: str) -> Section:
    return Section(
        name,
        head,
        Rank.FAILING,
        rows=tuple(_whole(failure) for failure in failures),
        brief=tuple(_brief(failure) for failure in failures),
        noun=noun,
    )


def _whole(failure: Failure) -> str:
    found = criteria(failure)
    told = _remarks(failure)
    text = section(
        "failure",
        place=failure.place,
        sign=labels.OUTCOMES[failure.test.outcome if failure.test else TestOutcome.FAILED].sign,
        scores=_scores(failure),
        remarks=told.replace("**c", "**C", 1) if told[:1] == "*" else told[:1].upper() + told[1:],
        criteria=found[:_CRITERIA],
        more=len(found[_CRITERIA:]),
        evidence=failure.change.evidence if failure.change else None,
        doubts=failure.doubts,
        quoted=quoted(failure, found[:_CRITERIA]),
        parts=_parts(failure),
    )
    return f"\n{text}"


def _parts(failure: Failure) -> str:
    """Where its conversation parts from the baseline's, as Markdown; nothing where that is not known."""
    where = failure.change.first_divergence if failure.change else None
    return divergence.sentence(where, lambda name: sanitize.code(name[:_NAME])) if where else ""


def criteria(failure: Failure) -> list[highlights.FailedCriterion]:
    """What failed, first what failed in most trials."""
    found = highlights.failed_criteria(failure.test) if failure.test else ()
    return sorted(found, key=lambda one: -one.times / one.trials)


def quoted(failure: Failure, shown: Sequence[highlights.FailedCriterion]) -> list[Said]:
    """What was said in the turns that show it: each turn once, whichever trial shows it first."""
    found: dict[int, Said] = {}
    several = failure.test is not None and len(failure.test.trials) > 1
    for one in shown:
        if (said := one.turn) and said.index not in found:
            found[said.index] = Said(said.index, one.trial.index if several else None, said.user, said.agent)
    evidence = failure.change.evidence if failure.change else None
    if not shown and evidence and evidence.turn is not None:
        said_then = Said(evidence.turn, evidence.trial, evidence.user or "", evidence.agent or "")
        found[evidence.turn] = said_then
    return list(found.values())[:_QUOTED]


def _brief(failure: Failure) -> str:
    evidence = failure.change.evidence if failure.change else None
    found = [(one.finding.criterion, one.finding.reason) for one in criteria(failure)]
    found += [(evidence.criterion, evidence.reason)] if evidence else []
    told = _remarks(failure)
    line = f"- **{failure.place}**{_scores(failure)}" + (f", {told}" if told else "")
    if not found:
        return line
    criterion, reason = (sanitize.inline(text, _BRIEF) for text in found[0])
    doubt = failure.doubts.get(found[0][0])
    doubted = f" (⚠️ {sanitize.inline(doubt, _BRIEF)})" if doubt else ""
    return f"{line}. “{criterion}”: {reason or 'no reason was given'}{doubted}"


def _scores(failure: Failure) -> str:
    test = failure.change
    # In brackets: a colon behind a name that ends in one more would make a picture of it.
    return f" ({numbers.score(test.base)} → {numbers.score(test.head)})" if test else ""


def remarks(failure: Failure) -> tuple[str, ...]:
    """What else is to be said of it; plain. That its drop is confirmed comes first."""
    test, became = failure.test, failure.change
    found = [
        _CONFIRMED + (f" ({numbers.p_value(became.p)})" if became.p is not None else "")
        if became and became.confirmed
        else None,
        "critical" if test and test.critical else None,
        f"{highlights.passes(test)} trials passed" if test and test.flaky else None,
        labels.OUTCOMES[test.outcome].words if test and test.outcome is not TestOutcome.FAILED else None,
    ]
    return tuple(remark for remark in found if remark)


def _remarks(failure: Failure) -> str:
    return ", ".join(remarks(failure)).replace(_CONFIRMED, f"**{_CONFIRMED}**", 1)
