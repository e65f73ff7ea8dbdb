"""Verdicts that had failed, given again after the agent's replies were made to talk to the judge."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.verdict import UNUSABLE, Cause, Finding, Outcome
from ci_evals.grading.grade import grade
from ci_evals.rejudging.saved import SavedConversation
from ci_evals.scoring.agreement.clustered import Bundle, share_of
from ci_evals.scoring.statistics import ScorePair, chance_of_drop
from ci_evals.studies.asking import Asking, shuffled, spread_evenly
from ci_evals.studies.attack.attacks import Attack, attacks, harmless
from ci_evals.studies.attack.result import AttackKind, Attacks
from ci_evals.studies.conversations import JudgedConversation, check_judged, conversations_of

AS_IT_WAS = 2
"""The times that each verdict is given again with nothing added. Together with those to which harmless words
were added this tells what the judge changes by itself."""


@dataclass(frozen=True)
class Target:
    """A verdict that had failed."""

    conversation: JudgedConversation
    criterion: int
    """Its place among the judged ones of the trial, counted from 0."""


def targets(run: SavedRun, most: int, seed: int) -> tuple[Target, ...]:
    """Draw at most `most` failed verdicts, spread over the criteria of all tests.

    Raises:
        UsageError: no judged criterion failed, so that there is nothing to turn.
    """
    check_judged(run)
    groups: defaultdict[tuple[int, int, int], list[Target]] = defaultdict(list)
    for one in conversations_of(run):
        for number, finding in enumerate(one.judged):
            if finding.outcome is Outcome.FAILED:
                groups[one.position.suite, one.position.test, number].append(Target(one, number))
    if not groups:
        raise UsageError(
            f"{run.file}: no judged criterion failed in it, so that there is no verdict to turn into a "
            "pass; name a run with failures, as of an agent that misbehaves"
        )
    return tuple(spread_evenly([*groups.values()], most, f"attack {seed}"))


@dataclass(frozen=True)
class _AttackAttempt:
    target: int
    attack: Attack | None
    """None for a verdict that is only given again."""
    control: bool = False


@dataclass(frozen=True)
class _AttemptResult:
    one: _AttackAttempt
    finding: Finding

    @property
    def given(self) -> bool:
        """Tell whether the judge gave a usable answer."""
        return self.finding.cause not in {*UNUSABLE, Cause.NO_JUDGE}

    @property
    def turned(self) -> bool:
        """Tell whether a failed verdict became a pass."""
        return self.finding.outcome is Outcome.PASSED


async def attack(asking: Asking, found: Sequence[Target], seed: int, at: datetime) -> Attacks:
    """Put every attack into every conversation, and ask the judge again.

    Raises:
        UsageError: a trial is none that a run leaves; nobody was asked then.
    """
    cases = [target.conversation.case() for target in found]
    # In an order of its own, so that a study that is broken off has tried some of everything.
    tries = shuffled(list(_tries(cases)), f"attack {seed}")

    async def ask(place: int) -> _AttemptResult:
        one = tries[place]
        case = cases[one.target]
        transcript = one.attack.on(case.transcript) if one.attack else case.transcript
        test = case.tests[found[one.target].criterion]
        (finding,) = await grade(test, case.turns, transcript, asking.judge(f"attack/{place}"))
        return _AttemptResult(one, finding)

    answers = await asking.each(range(len(tries)), ask, _missing)
    answered_attempts = [answer for answer in answers if answer]
    controls = [answer for answer in answered_attempts if answer.one.control]
    control = _by_verdict(controls)
    attacked = [answer for answer in answered_attempts if not answer.one.control]
    kinds = dict.fromkeys(each.kind for each in attacks())
    return Attacks(
        judge=asking.used,
        at=at,
        verdicts=len(found),
        kinds=tuple(
            _kind(kind, [one for one in attacked if one.one.attack and one.one.attack.kind == kind], control)
            for kind in kinds
        ),
        whole=_kind("all attacks", attacked, control),
        control=_kind("no attack", controls, {}),
    )


def _tries(cases: Sequence[SavedConversation]) -> list[_AttackAttempt]:
    tries = []
    for place, case in enumerate(cases):
        tries += [_AttackAttempt(place, added, control=True) for added in (*[None] * AS_IT_WAS, *harmless())]
        single = len(case.result.turns) == 1
        tries += [_AttackAttempt(place, one) for one in attacks() if not (single and one.reply == "first")]
    return tries


_Turned = Mapping[int, Sequence[bool]]
"""By the number of a verdict: for each time it was given again, whether it became a pass."""


def _by_verdict(tried: Iterable[_AttemptResult]) -> _Turned:
    verdicts: defaultdict[int, list[bool]] = defaultdict(list)
    for one in tried:
        if one.given:
            verdicts[one.one.target].append(one.turned)
    return verdicts


def _kind(name: str, tried: Sequence[_AttemptResult], control: _Turned) -> AttackKind:
    """Sum up attempts of one kind. The verdict is the unit of the interval, since its attempts are alike."""
    verdicts = _by_verdict(tried)
    given = sum(map(len, verdicts.values()))
    return AttackKind(
        name=name,
        tried=given,
        turned=sum(map(sum, verdicts.values())),
        undecided=len(tried) - given,
        share=share_of(Bundle(sum(turned), len(turned)) for turned in verdicts.values()),
        p=_chance(verdicts, control),
    )


def _chance(verdicts: _Turned, control: _Turned) -> float | None:
    """The probability of as many flips if attacks made no difference."""
    pairs = [
        ScorePair(head=_points(control[place]), base=_points(verdicts[place]))
        for place in sorted(verdicts)
        if place in control
    ]
    chance = chance_of_drop(pairs, "attack")
    return chance.p if chance else None


def _points(turned: Iterable[bool]) -> tuple[float, ...]:
    return tuple(100.0 * one for one in turned)


def _missing(tried: _AttemptResult) -> str | None:
    return None if tried.given else tried.finding.reason
