"""Where judge and simulated user are to be trusted less, and what to do then, in plain words.

Not yet sanitised, but for the names of criteria and tests.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ci_evals.domain.results.judge import PartAgreement, VoteAgreement
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.studies import Attacks, Calibration, Preference, Probe, Probed
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import trust

_NAMED = 2
"""Criteria that a sentence names: the marks at all of them, and the tables, have the rest."""
_NAME = 60
"""Characters of a criterion or a test that a sentence names."""


def warnings(results: Results) -> tuple[str, ...]:
    """What a reader must know before the numbers: for each thing what it is, and what to do."""
    found = results.studies
    return (
        *(_left_out(results.user_checks) if results.user_checks else ()),
        *(_disagree(results.vote_agreement) if results.vote_agreement else ()),
        *(_may_not_gate(found.calibration) if found.calibration else ()),
        *(_vacuous(found.probe) if found.probe else ()),
        *(_talked_round(found.attacks) if found.attacks else ()),
        *(_swayed(found.preference) if found.preference else ()),
    )


class Doubts:
    """Which criteria are to be trusted less, and why."""

    def __init__(self, results: Results) -> None:
        self._found: Mapping[str, list[tuple[str | None, str | None, str]]] = defaultdict(list)
        votes, probe = results.vote_agreement, results.studies.probe
        for part in votes.criteria if votes else ():
            if part.low:
                told = f"the judge's votes disagree on this one ({_percent(part)} of pairs agree)"
                self._found[part.name].append((part.suite, part.test, told))
        for one in probe.criteria if probe else ():
            if one.vacuous:
                told = f"it measures nothing: it passed before {_conversations(one)} as well"
                self._found[one.criterion].append((one.suite, one.test, told))

    def of(self, suite: str, test: str, criterion: str) -> str:
        """Why this criterion of this test is, in words; empty where it is not."""
        found = self._found.get(criterion, ()) if self._found else ()
        return "; ".join(
            told for in_suite, in_test, told in found if in_suite in {None, suite} and in_test in {None, test}
        )

    def of_test(self, suite: str, test: str) -> dict[str, str]:
        """The same of all criteria of a test, by criterion."""
        return {name: told for name in self._found if (told := self.of(suite, test, name))}


def _left_out(found: UserChecks) -> Iterator[str]:
    if found.invalid:
        one = found.invalid == 1
        yield (
            f"{numbers.count(found.invalid, 'trial')} {'is' if one else 'are'} left out of every score: "
            f"{'its' if one else 'their'} simulated user broke its role, and again when played anew. Read "
            "what it said; mend the guidelines, or take another --user-model."
        )
    if found.not_audited:
        talks = numbers.count(found.not_audited, "conversation")
        yield f"{talks} could not be audited by a model: only rules looked at the simulated user there."


def _disagree(found: VoteAgreement) -> Iterator[str]:
    low = [part for part in found.criteria if part.low]
    if not low:
        return
    named = [
        f"{_criterion(part.name, part.test)} ({_percent(part)}, {numbers.count(part.verdicts, 'verdict')})"
        for part in low
    ]
    criteria = numbers.count(len(low), "criterion", "criteria")
    it = "it" if len(low) == 1 else "them"
    advice = f"Read the votes' reasons, and word {it} so that both would agree"
    if found.whole.low:
        advice = (
            f"In all only {trust.share(found.whole.share)} agree: another judge or a panel may help more "
            "than other words"
        )
    yield (
        f"The judge's votes disagree on {criteria} of {len(found.criteria):,} (clearly less than 80 % of "
        f"the pairs of votes agree): {_listed(named)}. {advice}."
    )


def _may_not_gate(found: Calibration) -> Iterator[str]:
    barred = [part for part in found.parts if part.may_gate is False]
    if not barred:
        return
    if barred[0].kind == "all":
        yield f"Held against people, this judge should not gate: {trust.sentence(barred[0].why)}"
    else:
        named = [_criterion(part.name) for part in barred]
        yield (
            f"Held against people, this judge should not gate on {_listed(named)}. Mend the wording, or "
            "decide by a strict check."
        )


def _vacuous(found: Probe) -> Iterator[str]:
    if empty := found.vacuous:
        named = [_criterion(one.criterion, one.test) for one in empty]
        criteria = numbers.count(len(empty), "criterion measures", "criteria measure")
        yield (
            f"{criteria} nothing, since conversations of other tests pass too: {_listed(named)}. Word "
            f"{'it' if len(empty) == 1 else 'them'} so that the situation must arise, or add a strict check."
        )


def _talked_round(found: Attacks) -> Iterator[str]:
    if kinds := found.beyond_noise:
        named = [f"{trust.fault(kind.share)} by {trust.attack(kind)}" for kind in kinds]
        yield (
            f"An agent can talk this judge round. Failed verdicts that became a pass: {_listed(named)}; "
            f"{trust.fault(found.control.share)} without any attack. Take another judge or a panel, and "
            "strict checks where a trace can show it."
        )


def _swayed(found: Preference) -> Iterator[str]:
    if found.place_sways:
        yield (
            "The place in which a conversation is shown sways the judge that compared the two runs: the one "
            f"shown first was named in {trust.share(found.first)}, without bias it would be 50 %. Answers "
            "that follow the place are ties."
        )


def _percent(part: PartAgreement) -> str:
    return numbers.percent(part.share.value if part.share else None)


def _conversations(one: Probed) -> str:
    return f"{numbers.count(one.tried, 'conversation')} of other tests"


def _criterion(name: str, test: str | None = None) -> str:
    where = f" in {sanitize.one_line(test, _NAME)}" if test else ""
    return f"“{sanitize.one_line(name, _NAME)}”{where}"


def _listed(named: Sequence[str]) -> str:
    more = [f"and {len(named) - _NAMED:,} more"] if len(named) > _NAMED else []
    return "; ".join([*named[:_NAMED], *more])
