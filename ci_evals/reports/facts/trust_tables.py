"""The numbers of judge and simulated user as tables, plain and not yet sanitised."""

from collections.abc import Iterable
from dataclasses import dataclass

from ci_evals.domain.results.judge import PartAgreement, VoteAgreement
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.studies import Attacks, Calibration, Counted, Noise, Preference, Probe
from ci_evals.reports import numbers
from ci_evals.reports.facts import trust
from ci_evals.reports.facts.trial_errors import rule


@dataclass(frozen=True)
class Grid:
    """A table. The first cell of a row names it."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...] = ()
    """The columns, beside the first, that hold words and no numbers."""
    bad: tuple[bool, ...] = ()
    """Of each row whether it is bad news; empty where none is."""
    told: bool = False
    """Whether the remark on it has all of it."""
    long: bool = False
    """Whether it has a row for each criterion or test."""

    @property
    def filled(self) -> tuple[int, ...]:
        """The places of the columns that have something in any row."""
        places = range(1, len(self.headers))
        return (0, *(place for place in places if any(row[place] for row in self.rows)))


def grids(results: Results) -> tuple[Grid, ...]:
    """All of them, in the order of the remarks."""
    found = results.studies
    made = (
        results.vote_agreement and _agreement(results.vote_agreement),
        results.user_checks and _ledger(results.user_checks),
        found.calibration and _calibration(found.calibration),
        found.noise and _noise(found.noise),
        found.noise and _gains(found.noise),
        found.preference and _preference(found.preference),
        found.attacks and _attacks(found.attacks),
        found.probe and _probe(found.probe),
    )
    return tuple(grid for grid in made if grid and grid.rows)


def _agreement(found: VoteAgreement) -> Grid:
    parts = [*_named(found.criteria, ""), *_named(found.categories, "category ")]
    return Grid(
        "Agreement of the judge's votes",
        ("criterion", "said of it", "test", "pairs that agree", "alpha", "verdicts"),
        tuple(
            (
                f"{before}{part.name}",
                "low" if part.low else "",
                part.test or "",
                trust.share(part.share),
                trust.coefficient(part.alpha),
                f"{part.verdicts:,}",
            )
            for before, part in parts
        ),
        ("test", "said of it"),
        tuple(part.low for _, part in parts),
        long=True,
    )


def _named(parts: Iterable[PartAgreement], before: str) -> list[tuple[str, PartAgreement]]:
    return [(before, part) for part in parts]


def _ledger(found: UserChecks) -> Grid:
    rows = sorted(found.by_rule.items(), key=lambda item: (-item[1], item[0]))
    return Grid(
        "Rules that simulated users broke",
        ("rule", "conversations", "of those looked at"),
        tuple(
            (rule(name), f"{count:,}", numbers.fault(count / max(found.conversations, count, 1)))
            for name, count in rows
        ),
        told=True,
    )


def _calibration(found: Calibration) -> Grid:
    words = {True: "may gate", False: "should not gate", None: "open"}
    return Grid(
        "The judge against people",
        (
            "part",
            "verdict",
            "items",
            "accuracy",
            "sensitivity",
            "specificity",
            "kappa",
            "alpha, all raters",
            "alpha, people",
            "kappa, people",
            "passes that people pass",
            "fails that people fail",
            "pass rate",
            "corrected",
            "why",
        ),
        tuple(
            (
                "all" if part.kind == "all" else f"{part.kind} {part.name}",
                words[part.may_gate],
                f"{part.items:,}",
                *(
                    "" if one is None else trust.share(one)
                    for one in (part.accuracy, part.sensitivity, part.specificity)
                ),
                *(
                    "" if one is None else trust.coefficient(one)
                    for one in (part.kappa, part.alpha, part.people, part.people_kappa)
                ),
                *_counted(part.counted),
                "" if part.pass_rate is None else numbers.percent(part.pass_rate),
                "" if part.corrected is None else trust.share(part.corrected),
                part.why,
            )
            for part in found.parts
        ),
        ("verdict", "why"),
        tuple(part.may_gate is False for part in found.parts),
        long=True,
    )


def _counted(found: Counted | None) -> tuple[str, str]:
    """Of passes, and of fails, of the judge: how many people say the same of, and how many were labelled."""
    if found is None:
        return "", ""
    return (
        _of(found.passes_passed, found.passes_passed + found.passes_failed),
        _of(found.fails_failed, found.fails_failed + found.fails_passed),
    )


def _of(some: int, of: int) -> str:
    return f"{some:,} of {of:,}" if of else ""


def _noise(found: Noise) -> Grid:
    return Grid(
        "Where the noise of a trial's score comes from",
        ("source", "share", "variance, square points"),
        (
            *(
                (
                    trust.SOURCES[part.source],
                    trust.share(part.share),
                    trust.estimate(part.variance, numbers.spread),
                )
                for part in found.parts
            ),
            ("between the tests", "", trust.estimate(found.between_tests, numbers.spread)),
        ),
    )


def _gains(found: Noise) -> Grid:
    return Grid(
        f"Square points that a {found.gains_per} takes off the variance of the run's score",
        (f"a {found.gains_per} in", "for these tests", "for any tests"),
        tuple(
            (f"more {remedy}", numbers.gain(gain), numbers.gain(found.gains_in_general.get(remedy)))
            for remedy, gain in found.gains.items()
        ),
    )


def _preference(found: Preference) -> Grid:
    return Grid(
        "Which of the two runs is preferred, by test",
        ("test", "wins", "losses", "ties", "a reason"),
        tuple(
            (
                one.test,
                f"{one.wins:,}",
                f"{one.losses:,}",
                f"{one.ties:,}",
                one.reasons[0] if one.reasons else "",
            )
            for one in found.tests
        ),
        ("a reason",),
        long=True,
    )


def _attacks(found: Attacks) -> Grid:
    kinds = [*found.kinds, found.whole, found.control]
    names = [*map(trust.attack, found.kinds), "all attacks", "none, judged again"]
    return Grid(
        "What instructions in an agent's replies do to the judge",
        ("attack", "tried", "became a pass", "undecided", "share", "p"),
        tuple(
            (
                name,
                f"{kind.tried:,}",
                f"{kind.turned:,}",
                f"{kind.undecided:,}" if kind.undecided else "",
                trust.fault(kind.share),
                "" if kind.p is None else numbers.chance(kind.p),
            )
            for name, kind in zip(names, kinds, strict=True)
        ),
    )


def _probe(found: Probe) -> Grid:
    ordered = sorted(
        found.criteria, key=lambda one: (not one.vacuous, -(one.share.value if one.share else 0))
    )
    return Grid(
        "Criteria before conversations of other tests",
        ("criterion", "said of it", "test", "tried", "passed", "undecided", "share"),
        tuple(
            (
                one.criterion,
                "measures nothing" if one.vacuous else "",
                one.test,
                f"{one.tried:,}",
                f"{one.passed:,}",
                f"{one.undecided:,}" if one.undecided else "",
                trust.share(one.share),
            )
            for one in ordered
        ),
        ("test", "said of it"),
        tuple(one.vacuous for one in ordered),
        long=True,
    )
