"""What is judged again: the saved run, and of each of its conversations what a judge is shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from ci_evals.domain.errors import UsageError
from ci_evals.domain.evaluation import judged
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.judge import CheckMode
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import AUTO, PlannedTurn, Test
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Finding, Verdict
from ci_evals.scoring.gate.policy import Policy
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import DEFAULT_MODELS, votes_of


@dataclass(frozen=True)
class RejudgeJob:
    """Everything that judging again needs besides the judges."""

    judged: Results
    """The run whose conversations they are, without secrets."""
    provider: str
    policy: Policy
    redactor: Redactor
    source: str = "the saved run"
    """What it is called in messages: its file."""
    judge_model: str | None = None
    """The judge of all suites; None for the one that the run had, or the provider's default."""
    judge_panel: tuple[str, ...] = ()
    """The models that vote in turn, in place of one judge."""
    judge_votes: int | None = None
    """At most, on one criterion; None for as many as the run had, or as a panel takes."""
    parallel: int = 1
    judge_check: CheckMode = CheckMode.OFF
    """Whether the judges are asked control questions. What a user starts says `auto`."""
    """Trials judged at a time."""
    baseline: Results | None = None
    baseline_note: str | None = None
    incomplete: tuple[str, ...] = ()
    """What is known of the saved run that makes it less than a whole one."""
    prices: PriceTable = NO_PRICES
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    ci: str | None = None
    write_unfinished: Callable[[Results], None] | None = None
    """Called before a judge is asked, with what the results are until all have answered."""

    def jury_of(self, suite: SuiteResult) -> "Jury":
        """Who judges a suite."""
        models = self.judge_panel or ((self.judge_model,) if self.judge_model else ())
        if not models and self.judged.run.provider == self.provider:
            models = suite.judge_panel or ((suite.judge_model,) if suite.judge_model else ())
        models = models or (DEFAULT_MODELS[self.provider].judge,)
        asked = self.judge_votes or (1 if self.judge_panel else suite.judge_votes)
        return Jury(models, votes_of(asked, models))


@dataclass(frozen=True)
class Jury:
    """The models that vote in turn on the criteria of a suite, at least one, and how often at the most."""

    models: tuple[str, ...]
    votes: int = 1

    @property
    def panel(self) -> tuple[str, ...]:
        """The models, where there are several."""
        return self.models if len(self.models) > 1 else ()


def to_judge(judged: Results) -> tuple[Trial, ...]:
    """The trials whose criteria are judged again, in their order.

    All that had judged criteria, whatever made the conversation end, but not those that were interrupted, or
    are left out for their simulated user.
    `index` is a trial's place among those of its test, whatever number it was given.
    """
    return tuple(
        Trial(suite=s, test=t, index=index)
        for s, suite in enumerate(judged.suites)
        for t, test in enumerate(suite.tests)
        for index, trial in enumerate(test.trials, 1)
        if trial.status not in {EndState.INTERRUPTED, EndState.INVALID_USER}
        and any(map(is_judged, trial.findings))
    )


def is_judged(finding: Finding) -> bool:
    """Whether a judge has the say on it."""
    return finding.kind == "judged"


@dataclass(frozen=True)
class Case:
    """A saved conversation, as a judge is shown it."""

    trial: Trial
    saved: TrialResult
    tests: tuple[Test, ...]
    """The test, once for each criterion that is judged, with that criterion alone."""
    turns: tuple[PlannedTurn, ...]

    @property
    def transcript(self) -> Transcript:
        """What was said, and why it ended."""
        return transcript_of(self.saved)


def transcript_of(saved: TrialResult) -> Transcript:
    """What was said in a saved trial, and why it ended."""
    return Transcript(
        turns=tuple(saved.turns),
        status=saved.status,
        error=saved.error,
        closing_remark=saved.closing_remark,
    )


def turns_of(test: TestResult, saved: TrialResult, source: str) -> tuple[PlannedTurn, ...]:
    """The turns of a saved trial, filled up with those of the simulated user as the run has done.

    Raises:
        UsageError: the trial is none that a run leaves.
    """
    if [turn.index for turn in saved.turns] != [*range(1, len(saved.turns) + 1)]:
        raise UsageError(
            f"{source}: the turns of a trial of {test.name!r} are not numbered from 1, as a run leaves them"
        )
    more = max(0, len(saved.turns) - len(test.turns))
    return test.turns + (PlannedTurn(user=AUTO),) * more


def case_of(work: RejudgeJob, trial: Trial) -> Case:
    """A trial of the saved run, made ready for a judge.

    Raises:
        UsageError: it is none that a run leaves.
    """
    test = work.judged.suites[trial.suite].tests[trial.test]
    saved = test.trials[trial.index - 1]
    turns = turns_of(test, saved, work.source)
    try:
        asked = tuple(
            Test(
                name=test.name,
                user_info=test.user_info,
                guidelines=test.guidelines,
                turns=test.turns,
                evaluations=(judged(finding.criterion, test.rubrics.get(place)),),
            )
            for place, finding in enumerate(saved.findings, 1)
            if is_judged(finding)
        )
    except ValidationError as error:
        what = error.errors(include_url=False)[0]
        place = ".".join(map(str, what["loc"]))
        raise UsageError(
            f"{work.source}: the test {test.name!r} is not as a run leaves it: {place}: {what['msg']}"
        ) from error
    return Case(trial, saved, asked, turns)


@dataclass(frozen=True)
class RejudgedTrial:
    """A trial after it was judged again."""

    result: TrialResult
    verdicts: tuple[Verdict | None, ...]
    """Of its judged criteria; None where the run ended before."""
