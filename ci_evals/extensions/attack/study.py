"""`attack`: failed verdicts, given again after the agent's replies were made to talk to the judge."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.verdict import UNUSABLE, Cause, Finding, Outcome
from ci_evals.extension_support.asking import Asking, shuffled, spread_evenly
from ci_evals.extension_support.conversations import JudgedConversation, check_judged, conversations_of
from ci_evals.extension_support.judging import judging
from ci_evals.extension_support.rejudging.saved import SavedConversation
from ci_evals.extension_support.settings import JudgeSettings
from ci_evals.extensions.attack.attacks import Attack, attacks, harmless
from ci_evals.extensions.attack.result import AttackKind, Attacks
from ci_evals.grading.grade import grade
from ci_evals.scoring.agreement.clustered import Bundle, share_of
from ci_evals.scoring.statistics import ScorePair, chance_of_drop

AS_IT_WAS = 2
"""The times that each verdict is given again with nothing added. Together with those to which harmless words
were added this tells what the judge changes by itself."""


@dataclass(frozen=True)
class Target:
    """A verdict that had failed."""

    conversation: JudgedConversation
    criterion: int
    """Its index among the judged ones of the trial."""


def attack_judge(results: Path, verdicts: int, settings: JudgeSettings, context: RunContext) -> None:
    """Attack the judge on at most so many verdicts, show the outcome, and keep it with the results.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    judge = judging(results, settings, context)
    failed = targets(judge.run, verdicts, settings.seed)
    attacked, asking = judge.carry_out(
        lambda asking: attack(asking, failed, settings.seed, datetime.now(UTC)), "verdict"
    )
    judge.finish(asking, attacked, decided=attacked.whole.tried)


def targets(run: SavedRun, most: int, seed: int) -> tuple[Target, ...]:
    """Draw at most `most` failed verdicts, spread over the criteria of all tests.

    Raises:
        UsageError: no judged criterion failed, so that there is nothing to turn.
    """
    check_judged(run)
    groups: defaultdict[tuple[int, int, int], list[Target]] = defaultdict(list)
    for conversation in conversations_of(run):
        at = conversation.position
        for index, finding in enumerate(conversation.judged):
            if finding.outcome is Outcome.FAILED:
                groups[at.suite, at.test, index].append(Target(conversation, index))
    if not groups:
        raise UsageError(
            f"{run.file}: no judged criterion failed in it, so there is no verdict to flip. Name a run with "
            "failures, such as one of an agent that misbehaves"
        )
    return tuple(spread_evenly([*groups.values()], most, f"attack {seed}"))


@dataclass(frozen=True)
class _Attempt:
    target: int
    """The index of the verdict."""
    attack: Attack | None
    """None for a verdict that is only given again."""
    control: bool = False


@dataclass(frozen=True)
class _AttemptResult:
    attempt: _Attempt
    finding: Finding

    @property
    def given(self) -> bool:
        """Tell whether the judge gave a usable answer."""
        return self.finding.cause not in {*UNUSABLE, Cause.NO_JUDGE}


async def attack(asking: Asking, failed: Sequence[Target], seed: int, at: datetime) -> Attacks:
    """Put every attack into every conversation, and ask the judge again.

    Raises:
        UsageError: a trial is none that a run leaves; nobody was asked then.
    """
    cases = [target.conversation.case() for target in failed]
    # In an order of its own, so that a study that is broken off has tried some of everything.
    attempts = shuffled(list(_attempts(cases)), f"attack {seed}")

    async def ask(index: int) -> _AttemptResult:
        attempt = attempts[index]
        case = cases[attempt.target]
        transcript = attempt.attack.on(case.transcript) if attempt.attack else case.transcript
        test = case.tests[failed[attempt.target].criterion]
        finding, *_ = await grade(test, case.turns, transcript, asking.judge(f"attack/{index}"))
        return _AttemptResult(attempt, finding)

    answers = await asking.each(
        range(len(attempts)), ask, lambda answer: None if answer.given else answer.finding.reason
    )
    results = [answer for answer in answers if answer]
    by_kind: defaultdict[str, list[_AttemptResult]] = defaultdict(list)
    for result in results:
        if result.attempt.attack and not result.attempt.control:
            by_kind[result.attempt.attack.kind].append(result)
    controls = [result for result in results if result.attempt.control]
    control = _flips(controls)
    return Attacks(
        judge=asking.used,
        at=at,
        verdicts=len(failed),
        kinds=tuple(
            _kind(kind, by_kind[kind], control) for kind in dict.fromkeys(each.kind for each in attacks())
        ),
        whole=_kind("all attacks", [result for result in results if not result.attempt.control], control),
        control=_kind("no attack", controls, {}),
    )


def _attempts(cases: Sequence[SavedConversation]) -> Iterator[_Attempt]:
    for target, case in enumerate(cases):
        for added in (*[None] * AS_IT_WAS, *harmless()):
            yield _Attempt(target, added, control=True)
        single = len(case.result.turns) == 1
        yield from (_Attempt(target, each) for each in attacks() if not (single and each.reply == "first"))


_Flips = Mapping[int, Sequence[bool]]
"""By the index of a verdict: for each time it was given again, whether it became a pass."""


def _flips(results: Iterable[_AttemptResult]) -> _Flips:
    verdicts: defaultdict[int, list[bool]] = defaultdict(list)
    for result in results:
        if result.given:
            verdicts[result.attempt.target].append(result.finding.outcome is Outcome.PASSED)
    return verdicts


def _kind(name: str, results: Sequence[_AttemptResult], control: _Flips) -> AttackKind:
    """Sum up attempts of one kind. The verdict is the unit of the interval, since its attempts are alike."""
    verdicts = _flips(results)
    given = sum(map(len, verdicts.values()))
    pairs = [
        ScorePair(head=_points(control[target]), base=_points(verdicts[target]))
        for target in sorted(verdicts)
        if target in control
    ]
    chance = chance_of_drop(pairs, "attack")
    return AttackKind(
        name=name,
        tried=given,
        turned=sum(map(sum, verdicts.values())),
        undecided=len(results) - given,
        share=share_of(Bundle(sum(turned), len(turned)) for turned in verdicts.values()),
        p=chance.p if chance else None,
    )


def _points(turned: Iterable[bool]) -> tuple[float, ...]:
    return tuple(100.0 * became_pass for became_pass in turned)
