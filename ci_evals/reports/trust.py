"""How far judge and simulated user can be trusted, in plain words that all reports share; not yet sanitised.

Brackets behind a number hold its 95 % interval.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_evals.domain.results import Results
from ci_evals.domain.trust import (
    Attacks,
    Calibration,
    Estimate,
    Noise,
    PartAgreement,
    Preference,
    Probe,
    Probed,
    UserLedger,
    VoteAgreement,
)
from ci_evals.reports import numbers
from ci_evals.reports.mishaps import rule
from ci_evals.scoring.judge import judge_of, unlike

_NAMED = 3
"""Criteria that a sentence names."""
_NAME = 80
"""Characters of a criterion or a test that a sentence names."""
SOURCES = {"agent": "the agent", "user": "the simulated user", "judge": "the judge"}
BEST = {
    "loops": "more trials of each test (--loops)",
    "votes": "more votes of the judge (--judge-votes)",
    "tests": "more tests",
}


@dataclass(frozen=True)
class Remark:
    """What is known of one thing, in sentences."""

    topic: str
    text: str


def remarks(results: Results) -> tuple[Remark, ...]:
    """All that is known of judge and simulated user of this run, a remark for each study."""
    found, used = results.studies, judge_of(results)

    def other(judge: object) -> str:
        """Who judged, where that is another judge than the run's."""
        of_study = getattr(judge, "judge", None)
        if used is None or of_study is None or unlike(used, of_study) is None:
            return ""
        return f" Judged by {', '.join(of_study.models)}."

    told = (
        ("Votes", results.vote_agreement and _votes(results.vote_agreement)),
        ("Simulated user", results.user_ledger and _user(results.user_ledger)),
        ("Calibration", found.calibration and _calibration(found.calibration)),
        (
            "Calibration",
            found.old_calibration
            and f"The one of {found.old_calibration.at:%Y-%m-%d} says nothing of this run: "
            f"{_sentence(found.old_calibration.why)}",
        ),
        ("Noise", found.noise and _noise(found.noise) + other(found.noise)),
        ("Preference", found.preference and _preference(found.preference) + other(found.preference)),
        ("Attacks", found.attacks and _attacks(found.attacks) + other(found.attacks)),
        ("Criteria", found.probe and _probe(found.probe) + other(found.probe)),
    )
    return tuple(Remark(topic, text) for topic, text in told if text)


def warnings(results: Results) -> tuple[str, ...]:
    """What a reader must know before the numbers, a sentence each."""
    found = results.studies
    return (
        *(_left_out(results.user_ledger) if results.user_ledger else ()),
        *(_disagree(results.vote_agreement) if results.vote_agreement else ()),
        *(_may_not_gate(found.calibration) if found.calibration else ()),
        *(_vacuous(found.probe) if found.probe else ()),
        *(_talked_round(found.attacks) if found.attacks else ()),
        *(_swayed(found.preference) if found.preference else ()),
    )


def cached(results: Results) -> str | None:
    """How much of what the judge said came from the cache; None where nothing did."""
    judges = [role for role in results.usage.by_role if role.role == "judge"]
    calls, known = sum(role.calls for role in judges), sum(role.cached for role in judges)
    if not known:
        return None
    return f"{numbers.fault(known / max(calls, known))} of the judge's answers are from the cache"


class Doubts:
    """Which criteria are to be trusted less, and why."""

    def __init__(self, results: Results) -> None:
        self._found: Mapping[str, list[tuple[str | None, str | None, str]]] = defaultdict(list)
        votes, probe = results.vote_agreement, results.studies.probe
        for part in votes.criteria if votes else ():
            if part.low:
                told = f"the judge's votes disagree on this one ({_pairs(part)})"
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


def estimate(found: Estimate | None, show: Callable[[float], str]) -> str:
    """`92 % (86 % to 97 %)`: a number and its interval."""
    if found is None:
        return numbers.NONE
    bounds = (
        f" ({numbers.extent(found.low, found.high, show)})"
        if found.low is not None and found.high is not None
        else ""
    )
    return f"{show(found.value)}{bounds}"


def share(found: Estimate | None) -> str:
    """A share between 0 and 1, with its interval."""
    return estimate(found, numbers.percent)


def coefficient(found: Estimate | None) -> str:
    """A kappa or an alpha, with its interval."""
    return estimate(found, numbers.coefficient)


def breaches(ledger: UserLedger) -> str:
    """Broken rules with the number of conversations, the commonest first: `repeats 2, meta text 1`."""
    found = sorted(ledger.by_rule.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{rule(name)} {count:,}" for name, count in found)


def _votes(found: VoteAgreement) -> str:
    who = f" by {', '.join(found.models)}" if found.models else ""
    votes = f"Up to {numbers.count(found.votes, 'vote')} on a criterion{who}"
    if found.whole.share is None:
        return f"{votes}; no verdict had two that decide."
    alpha = (
        "all of them alike, so that Krippendorff's alpha has no value"
        if found.whole.alpha is None
        else f"Krippendorff's alpha {coefficient(found.whole.alpha)}"
    )
    on = numbers.count(found.whole.verdicts, "verdict")
    return (
        f"{votes}; of the pairs of votes on one verdict {share(found.whole.share)} agree, {alpha}, on {on}."
    )


def _disagree(found: VoteAgreement) -> Iterator[str]:
    low = [part for part in found.criteria if part.low]
    if not low:
        return
    named = [f"“{part.name[:_NAME]}”{_where(part.test)} ({_pairs(part)})" for part in low[:_NAMED]]
    criteria = numbers.count(len(low), "criterion", "criteria")
    yield f"The judge's votes disagree on {criteria}, whose verdicts rest on little: {_listed(named, low)}."


def _pairs(part: PartAgreement) -> str:
    return f"{numbers.percent(part.share.value if part.share else None)} of pairs agree"


def _user(found: UserLedger) -> str:
    looked = f"{numbers.count(found.conversations, 'conversation')} looked at"
    if found.audited:
        looked += f", {found.audited:,} by a model as well"
    again = numbers.count(found.played_again, "trial")
    played = f"{again} played again, since the user had broken its role" if found.played_again else ""
    if found.broken and found.played_again:
        played += f" ({share(found.broken)} of the first users)"
    left = f"{found.invalid:,} left out" if found.invalid else ""
    broken = f"broken rules, by conversations: {breaches(found)}" if found.by_rule else "no rule was broken"
    return "; ".join(filter(None, [looked, played, left, broken])) + "."


def _left_out(found: UserLedger) -> Iterator[str]:
    if found.invalid:
        trials, it = numbers.count(found.invalid, "trial"), "its" if found.invalid == 1 else "their"
        is_left = "is" if found.invalid == 1 else "are"
        yield (
            f"{trials} {is_left} left out of every score, since {it} simulated user broke its role, "
            f"and did so again when {'it was' if found.invalid == 1 else 'they were'} played anew."
        )
    if found.not_audited:
        talks = numbers.count(found.not_audited, "conversation")
        yield f"{talks} could not be audited: only the rules of the ledger say how the simulated user did."


def _calibration(found: Calibration) -> str:
    people, labels = (
        numbers.count(found.people, "person", "people"),
        numbers.count(found.labels, "label"),
    )
    whole = next((part for part in found.parts if part.kind == "all"), None)
    said = f"Held against {labels} of {people} ({found.at:%Y-%m-%d})."
    if whole is None:
        return said
    gates = {
        True: "The judge may gate",
        False: "The judge should not gate",
        None: "Whether the judge may gate is open",
    }
    said += f" {gates[whole.may_gate]}: {_sentence(whole.why)}"
    measured = [
        f"{name} {shown}"
        for name, shown in (
            ("accuracy", whole.accuracy and share(whole.accuracy)),
            ("sensitivity", whole.sensitivity and share(whole.sensitivity)),
            ("specificity", whole.specificity and share(whole.specificity)),
            ("Cohen's kappa", whole.kappa and coefficient(whole.kappa)),
        )
        if shown
    ]
    if measured:
        said += f" {_upper(', '.join(measured))}."
    if whole.pass_rate is not None and whole.corrected:
        said += (
            f" It passes {numbers.percent(whole.pass_rate)} of all verdicts; "
            f"freed of its errors that is {share(whole.corrected)}."
        )
    return said


def _may_not_gate(found: Calibration) -> Iterator[str]:
    barred = [part for part in found.parts if part.may_gate is False]
    if not barred:
        return
    if barred[0].kind == "all":
        yield f"Held against people, this judge should not gate: {_sentence(barred[0].why)}"
    else:
        named = [f"“{part.name[:_NAME]}”" for part in barred[:_NAMED]]
        yield f"Held against people, this judge should not gate on {_listed(named, barred)}."


def _noise(found: Noise) -> str:
    shares = ", ".join(f"{SOURCES[part.source]} {share(part.share)}" for part in found.parts)
    told = (
        f"Of the noise between trials of one test: {shares}; from {numbers.count(found.plays, 'play')} and "
        f"{numbers.count(found.judgements, 'judgement')} on {numbers.count(found.tests, 'test')}."
    )
    best = f" The next dollar belongs in {BEST[found.best]}: {_sentence(found.why)}" if found.best else ""
    return told + (best or f" {_upper(_sentence(found.why))}")


def _preference(found: Preference) -> str:
    commit = f"commit {found.other_commit[:7]}" if found.other_commit else f"run {found.other[:_NAME]}"
    ties = numbers.count(found.ties, "tie")
    wins, losses = numbers.count(found.wins, "win"), numbers.count(found.losses, "loss", "losses")
    pairs = numbers.count(found.pairs, "pair")
    told = f"Against {commit}, of {pairs} of conversations: {wins}, {losses}, {ties}"
    if found.undecided:
        told += f", {found.undecided:,} undecided"
    if found.share:
        told += f"; this run is preferred in {share(found.share)}, ties counted half"
    if found.p is not None:
        told += f", {numbers.p_value(found.p)} over the tests"
    told += "."
    if found.first:
        told += (
            f" Whichever was shown first was named in {share(found.first)}: without bias it would be 50 %."
        )
    if found.swapped:
        told += f" In {numbers.count(found.swapped, 'pair')} the answer followed the place."
    return told


def _attacks(found: Attacks) -> str:
    whole, control = found.whole, found.control
    return (
        f"Of {numbers.count(whole.tried, 'attack')} on {numbers.count(found.verdicts, 'failed verdict')} "
        f"{whole.turned:,} made a pass of it, {estimate(whole.share, numbers.fault)}; judged again without "
        f"any, {control.turned:,} of {control.tried:,} became a pass."
    )


def _talked_round(found: Attacks) -> Iterator[str]:
    if kinds := found.beyond_noise:
        named = [
            f"{kind.name.replace('_', ' ')} ({estimate(kind.share, numbers.fault)})"
            for kind in kinds[:_NAMED]
        ]
        yield (
            "An agent can talk this judge round, more often than the judge changes its mind by itself: "
            f"{_listed(named, kinds)}."
        )


def _swayed(found: Preference) -> Iterator[str]:
    if found.place_sways:
        yield (
            "The place in which a conversation is shown sways the judge that compared the two runs: the "
            f"first was named in {share(found.first)}, without bias it would be 50 %. What followed the "
            "place is a tie."
        )


def _probe(found: Probe) -> str:
    empty = len(found.vacuous)
    of = numbers.count(len(found.criteria), "criterion", "criteria")
    if not empty:
        return f"Tried before conversations of other tests, none of {of} passed before all of them."
    return f"Tried before conversations of other tests, {empty:,} of {of} passed before all of them."


def _vacuous(found: Probe) -> Iterator[str]:
    if empty := found.vacuous:
        named = [f"“{one.criterion[:_NAME]}”{_where(one.test)}" for one in empty[:_NAMED]]
        criteria = numbers.count(len(empty), "criterion measures", "criteria measure")
        yield f"{criteria} nothing: conversations of other tests pass too. {_listed(named, empty)}."


def _conversations(one: Probed) -> str:
    return f"{numbers.count(one.tried, 'conversation')} of other tests"


def _where(test: str | None) -> str:
    return f" in {test[:_NAME]}" if test else ""


def _listed(named: Sequence[str], of: Sequence[object]) -> str:
    more = [f"and {len(of) - _NAMED:,} more"] if len(of) > _NAMED else []
    return "; ".join([*named, *more])


def _sentence(text: str) -> str:
    """`text` with one full stop at its end."""
    return f"{text.strip().rstrip('.')}."


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
