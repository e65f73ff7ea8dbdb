"""Saved runs that are judged again, and their conversations as a judge is shown them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue, ValidationError

from ci_evals.domain.checks.evaluation import STRICT_KINDS, judged
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import SuiteModels, Trial
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.suite import AUTO, PlannedTurn, Test, planned_turns
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Cause, Finding, Outcome, Verdict
from ci_evals.extension_registry import providers
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import NO_BASELINE, BaselineResults
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import votes_of


@dataclass(frozen=True)
class RejudgeJob:
    """Everything that judging again needs besides the judges."""

    judged: Results
    """The run whose conversations they are, without secrets."""
    provider: str
    policy: Policy
    redactor: Redactor
    source: str = "the saved run"
    """Its name in messages: its file."""
    judge_model: str | None = None
    """The judge of all suites; None for the one that the run had, or the provider's default."""
    judge_panel: tuple[str, ...] = ()
    """The models that vote in turn, instead of one judge."""
    judge_votes: int | None = None
    """At most, on one criterion; None for as many as the run had, or as a panel takes."""
    parallel: int = 1
    """Trials judged at a time."""
    judge_check: CheckMode = CheckMode.OFF
    """The mode of the judge check; commands default to `auto`."""
    baseline: BaselineResults = NO_BASELINE
    incomplete: tuple[str, ...] = ()
    """Reasons why the saved run is not a whole one."""
    prices: PriceTable = NO_PRICES
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    ci: str | None = None
    write_unfinished: Callable[[Results], None] | None = None
    """Called before a judge is asked, with what the results are until all have answered."""

    def models_of(self, suite: SuiteResult) -> SuiteModels:
        """The models of a suite with the judges that judge it again."""
        judges = self.judge_panel or ((self.judge_model,) if self.judge_model else ())
        if not judges and self.judged.run.provider == self.provider:
            judges = suite.models.judges
        judges = judges or (providers()[self.provider].judge,)
        votes = self.judge_votes or (1 if self.judge_panel else suite.judge_votes)
        return replace(suite.models, judges=judges, votes=votes_of(votes, judges))


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
    """Return whether a judge may decide it: not where nobody played the conversation's user."""
    return finding.kind == "judged" and finding.cause is not Cause.NO_USER


@dataclass(frozen=True)
class SavedConversation:
    """A saved conversation, as a judge is shown it."""

    trial: Trial
    result: TrialResult
    tests: tuple[Test, ...]
    """The test, once for each criterion that is judged: with that first, and then with the checks by which it
    expected the agent to end the conversation."""
    turns: tuple[PlannedTurn, ...]

    @property
    def transcript(self) -> Transcript:
        """The turns, and why the conversation ended."""
        return transcript_of(self.result)

    @property
    def has_claims(self) -> bool:
        """True if a criterion is about the agent's claims."""
        return any(finding.claims for finding in self.result.findings)


@dataclass(frozen=True)
class RejudgedTrial:
    """A trial after it was judged again."""

    result: TrialResult
    verdicts: tuple[Verdict | None, ...]
    """The verdicts on its judged criteria; None if the run ended before."""


def usage_of_others(trial: TrialResult) -> tuple[RoleUsage, ...]:
    """The usage of a trial without its judge's."""
    return tuple(usage for usage in trial.usage if usage.role != "judge")


def transcript_of(saved: TrialResult) -> Transcript:
    """The turns of a saved trial, and why its conversation ended."""
    return Transcript(
        turns=tuple(saved.turns),
        status=saved.status,
        error=saved.error,
        closing_remark=saved.closing_remark,
        probes=saved.probes,
        canaries=saved.canaries,
    )


def turns_of(test: TestResult, saved: TrialResult, source: str) -> tuple[PlannedTurn, ...]:
    """The planned turns of a saved trial, with those that the simulated user added."""
    if [turn.index for turn in saved.turns] != [*range(1, len(saved.turns) + 1)]:
        raise UsageError(f"{source}: the turns of a trial of {test.name!r} are not numbered from 1")
    planned = planned_turns(test.turns)
    return planned + (PlannedTurn(user=AUTO),) * max(0, len(saved.turns) - len(planned))


def saved_conversation(job: RejudgeJob, trial: Trial) -> SavedConversation:
    """A trial of the saved run, made ready for a judge.

    Raises:
        UsageError: it is none that a run leaves.
    """
    test = job.judged.suites[trial.suite].tests[trial.test]
    result = test.trials[trial.index - 1]
    turns = turns_of(test, result, job.source)
    try:
        ending = tuple(_expecting_the_end(result))
        tests = tuple(
            Test(
                name=test.name,
                user_info=test.user_info,
                guidelines=test.guidelines,
                turns=test.turns,
                may_escalate=test.may_escalate,
                evaluations=(judged(finding, test.rubrics.get(number)), *ending),
            )
            for number, finding in enumerate(result.findings, 1)
            if is_judged(finding)
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{job.source}: the test {test.name!r} is not valid in saved results: {path}: {first['msg']}"
        ) from error
    return SavedConversation(trial, result, tests, turns)


def _expecting_the_end(result: TrialResult) -> Iterator[StrictCheck]:
    """Yield the checks by which a test expected the agent to end the conversation as it did."""
    for finding in result.findings:
        kind = STRICT_KINDS.get(finding.strict or "")
        if kind and kind.expects_end is result.status and finding.outcome is Outcome.PASSED:
            yield kind.model_validate({"criterion": finding.criterion, "strict": finding.strict})
