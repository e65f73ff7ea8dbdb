"""Results of what was played until now: scores, comparison and decision, and facts of the run as a whole."""

import platform
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from uuid import uuid4

from ci_evals._version import __version__
from ci_evals.adapters.journal.records import JournalHeader, Recorded
from ci_evals.domain.base import Percent, instant
from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.plan import BASE, Plan, Trial
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.comparison import ComparisonLook
from ci_evals.domain.results.gate import GateLook
from ci_evals.domain.results.run import (
    Digests,
    Reruns,
    Results,
    Resumed,
    Rounds,
    RunInfo,
    Tool,
)
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.gate.decision import gate_looks
from ci_evals.grading import graded_criteria, judge
from ci_evals.job import unproven_paths
from ci_evals.job.chosen import ChosenModels
from ci_evals.job.conclude import Conclusion
from ci_evals.job.job import Job
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.unproven_paths import Settled
from ci_evals.planning import model_family
from ci_evals.reports.names import folders_for
from ci_evals.scoring import tool_names
from ci_evals.scoring.comparison.reruns import level, share_of_level, with_share
from ci_evals.scoring.comparison.rounds import Look, looks_at
from ci_evals.scoring.null_score import NullScores
from ci_evals.scoring.scorecard import Scorecard, SuiteFacts, score
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import summed, usage_of_roles
from ci_evals.stop import Stop
from ci_evals.support import templates
from ci_evals.support.digest import digest, of_loops, of_models, of_tests
from ci_evals.support.redaction import Redactor

JUDGE_TEMPLATES = (
    *judge.TEMPLATES,
    *graded_criteria.TEMPLATES,
    "adapters/prompts/json_answer.md.j2",
)
"""What a judge may be shown of every suite besides its own words and the conversation."""


class ResultsBuilder:
    """Makes results of what was played until now."""

    def __init__(
        self,
        job: Job,
        models: ChosenModels,
        stop: Stop,
        now: Callable[[], datetime],
        *,
        skipped_because: str | None = None,
        notes: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._job, self._chosen, self._stop, self._now = job, models, stop, now
        self._skipped_because, self._notes = skipped_because, notes
        self.resumed: Collection[Trial] = ()
        """The trials that are taken from the journal."""
        self.judge_checks: JudgeChecks | None = None
        """Control questions to the judges, if any are asked."""
        self.undecided_rule = ScoreRule(offline=models.offline)
        past = job.journal.past if job.journal else None
        self._id = past.header.run if past else uuid4().hex
        self._started = past.header.started_at if past else self.now()
        self._begun = time.perf_counter() - (past.elapsed if past else 0)
        names = [job.redactor.text(planned.suite.name) for planned in job.plan.arm(0).suites]
        folders = folders_for(names, self._started)
        self._facts = tuple(map(SuiteFacts, folders * len(job.plan.arms), models.models))
        self._digests = _digests(job, models)
        self._looks: dict[bool, dict[int, ComparisonLook]] = {True: {}, False: {}}
        """The looks at p, by whether the base agent was played: without it they compare with other runs."""
        self._gate_looks: dict[int, tuple[GateLook, ...]] = {}

    @property
    def header(self) -> JournalHeader:
        """The journal's facts of the run."""
        journal, recorded = self._job.journal, None
        if journal and journal.holds_answers:
            recorded = Recorded.of(self._job.plan, self._job.facts.config, self._job.redactor)
        return JournalHeader(
            tool=Tool(version=__version__),
            run=self._id,
            started_at=self._started,
            digests=self._digests,
            origin=self._job.facts.origin,
            tests=tuple(len(planned.tests) for planned in self._job.plan.suites),
            connection=self._connection,
            context=self._job.facts.identity,
            recorded=recorded,
        )

    @property
    def _connection(self) -> str:
        """A digest of how agents are reached, and of the agents beside the first one."""
        plan, connection = self._job.plan, self._chosen.connection
        return (
            connection if len(plan.arms) == 1 else digest([connection, plan.arms, _agents(self._job, plan)])
        )

    def now(self) -> datetime:
        """Return the time by the run's clock, or the nearest that results can hold."""
        return instant(self._now())

    @property
    def elapsed(self) -> float:
        """Seconds that the run has gone on, without the time in which it was interrupted."""
        return time.perf_counter() - self._begun

    def results(self, plan: Plan, played: Sequence[TrialResult | None]) -> Results:
        """Score, compare and decide, without secrets. `played` is in the order of the plan's trials."""
        settled = unproven_paths.settle(plan, played)
        played = settled.results
        both_sides = (BASE in plan.arms or plan.reference is not None) and not plan.first_arm_only
        looks = looks_at(plan.looks, both_sides=both_sides)
        look = next((look for look in looks if look.trials == plan.loops), None)
        if look and self._job.pool:
            look = with_share(look, share_of_level(self._job.pool.drops))
        results = replace(self._conclusion, look=look, screening=plan.first_arm_only).results(
            lambda: self._scorecard(plan, played, self._job.prices()),
            lambda: self._info(plan, settled),
        )
        return self._looked_at(results, look, both_sides=both_sides) if look else results

    def _looked_at(self, results: Results, look: Look, *, both_sides: bool) -> Results:
        """Results with what this look and those before it came to."""
        gate, comparison, looks = results.gate, results.comparison, self._looks[both_sides]
        self._gate_looks[look.trials] = tuple(gate_looks(gate.checks, look.trials))
        of_scores = tuple(chain.from_iterable(self._gate_looks.values()))
        results = replace(results, gate=replace(gate, looks=of_scores))
        if comparison and comparison.p is not None:
            decision = look.decision(comparison.p)
            looks[look.trials] = ComparisonLook(trials=look.trials, p=comparison.p, decision=decision)
        if comparison:
            results = replace(results, comparison=replace(comparison, looks=tuple(looks.values())))
        return results

    def unfinished(self) -> Results:
        """Return the results of this run while it is under way: nothing is played yet, nothing passed."""
        plan = self._job.plan
        card = self._scorecard(plan, [None] * len(plan.trials), NO_PRICES)
        return self._conclusion.unfinished(card, self._info(plan, Settled(())))

    @property
    def _conclusion(self) -> Conclusion:
        job = self._job
        policy = job.policy.redacted(job.redactor.text)
        return Conclusion(policy, job.redactor, self._stop, job.baseline, self.judge_checks)

    def _scorecard(self, plan: Plan, played: Sequence[TrialResult | None], prices: PriceTable) -> Scorecard:
        """The scores of the first arm, with what all of them cost."""
        cards = [
            self._scorecard_of_arm(number, plan, played, prices)
            for number in range(1 if plan.first_arm_only else len(plan.arms))
        ]
        usages, checks = [card.usage for card in cards], self.judge_checks
        if checks and checks.usage:
            usages.append(usage_of_roles(checks.usage, prices))
        whole = cards[0]
        if len(usages) > 1:
            whole = replace(whole, usage=summed(usages))
        if len(cards) > 1:
            named = zip(plan.arms, cards, strict=True)
            arms = [card.as_arm(name, gated=card is cards[0]) for name, card in named]
            whole = replace(whole, arms=tuple(sorted(arms, key=lambda arm: arm.name != plan.reference)))
        return whole

    def _scorecard_of_arm(
        self, number: int, plan: Plan, played: Sequence[TrialResult | None], prices: PriceTable
    ) -> Scorecard:
        own_plan, redactor = plan.arm(number), self._job.redactor
        size = len(own_plan.suites)
        own = [
            result
            for trial, result in zip(plan.trials, played, strict=True)
            if plan.arm_of(trial.suite) == number
        ]
        facts = self._facts[number * size : (number + 1) * size]
        card = score(
            own_plan,
            own,
            facts,
            self.undecided_rule,
            taken=self._job.reused,
            pooled=self._pooled(number),
            prices=prices,
            shown=redactor.text,
        )
        # Tests are compared by name, and those of a baseline have had their secrets taken out.
        suites = tuple(
            _redacted_suite(_with_null_scores(suite, own), redactor)
            for suite, own in zip(card.suites, self._null_scores.tests, strict=True)
        )
        return replace(card, suites=suites)

    def _pooled(self, arm: int) -> Mapping[tuple[int, int], Sequence[TrialResult]]:
        """The trials of earlier attempts of one agent, by the numbers of suite and test."""
        pool = self._job.pool
        if pool is None:
            return {}
        return {(suite, test): trials for (own, suite, test), trials in pool.trials.items() if own == arm}

    @property
    def _reruns(self) -> Reruns | None:
        """The facts about earlier attempts at the commit."""
        pool = self._job.pool
        if pool is None:
            return None
        return Reruns(
            ci_run=pool.reruns.ci_run,
            attempt=pool.reruns.attempt,
            level=level(share_of_level(pool.drops)),
            not_pooled=pool.not_pooled,
            setup=self._connection,
        )

    def _warnings(self, plan: Plan, settled: Settled) -> tuple[str, ...]:
        facts, redact = self._job.facts, self._job.redactor.text
        warnings = [*facts.warnings]
        past = self._job.journal.past if self._job.journal else None
        if past and (resumed := facts.identity.caution(past.header.context)):
            warnings.append(resumed)
        if self.judge_checks:
            warnings += self.judge_checks.warnings()
        warnings += map(redact, tool_names.warnings(plan, settled.results))
        warnings += map(redact, model_family.warnings(self._reported_models(plan, settled)))
        warnings += map(redact, settled.warnings)
        warnings += self._notes()
        return tuple(warnings)

    def _reported_models(self, plan: Plan, settled: Settled) -> Iterator[tuple[str, str]]:
        """Yield each judge with each model that answered it, as replies report it and nothing else does."""
        for trial, result in zip(plan.trials, settled.results, strict=False):
            if result is None or not any(finding.kind == "judged" for finding in result.findings):
                continue
            if model_family.may_be_reported(plan.suites[trial.suite].suite):
                judges = self._facts[trial.suite].models.judges
                yield from ((judge, model) for model in result.turns.models for judge in judges)

    @cached_property
    def _null_scores(self) -> NullScores:
        return NullScores.of(self._job.plan)

    @cached_property
    def _definitions(self) -> tuple[SuiteDefinition, ...] | None:
        """The requirements of the suites, without secrets."""
        return tuple(map(self._job.redactor.model, self._job.plan.definitions)) or None

    def _resumed(self, plan: Plan) -> Resumed | None:
        past = self._job.journal.past if self._job.journal else None
        trials = sum(trial in self.resumed for trial in plan.trials)
        if not past or not trials:
            return None
        context = past.header.context
        return Resumed(
            trials=trials,
            written_at=past.written_at,
            attempt=context.attempt,
            commit=context.checkout or context.commit,
        )

    def _info(self, plan: Plan, settled: Settled) -> RunInfo:
        job, skipped = self._job, self._skipped_because
        return RunInfo(
            id=self._id,
            started_at=self._started,
            finished_at=max(self.now(), self._started),
            duration_seconds=self.elapsed,
            status="skipped" if skipped else self._conclusion.status("completed"),
            stopped_because=skipped or self._stop.reason,
            config=dict(job.facts.config) | {"provider": self._chosen.provider},
            git=job.facts.git,
            environment=environment(job.facts.ci),
            digests=self._digests,
            rounds=Rounds(looks=plan.looks, played=plan.loops) if plan.looks else None,
            shard=job.facts.shard,
            origin=job.facts.origin,
            resumed=self._resumed(plan),
            pooled=job.pool.runs if job.pool else (),
            reruns=self._reruns,
            baseline_note=job.baseline.note,
            null_score=self._null_scores.run,
            definitions=self._definitions,
            warnings=self._warnings(plan, settled),
        )


def environment(ci: str | None) -> dict[str, str | None]:
    """The machine that a run is played on."""
    return {"python": platform.python_version(), "system": platform.system(), "ci": ci}


def _with_null_scores(suite: SuiteResult, null_scores: Sequence[Percent | None]) -> SuiteResult:
    tests = zip(suite.tests, null_scores, strict=True)
    return replace(suite, tests=tuple(replace(test, null_score=score) for test, score in tests))


def _redacted_suite(suite: SuiteResult, redactor: Redactor) -> SuiteResult:
    """The suite without secrets; out of its trials they were taken when each ended."""
    tests = tuple(
        replace(redactor.model(replace(test, trials=())), trials=test.trials) for test in suite.tests
    )
    return replace(redactor.model(replace(suite, tests=())), tests=tests)


def _digests(job: Job, chosen: ChosenModels) -> Digests:
    """Digests of everything that scores depend on, each by itself. Secrets are taken out first."""
    plan = job.plan.arm(0)
    models = chosen.models[: len(plan.suites)]
    return Digests(
        suites=of_tests(one for planned in plan.suites for one in planned.test_digests),
        agents=_agents(job, plan),
        models=of_models(chosen.provider, (own.identity for own in models)),
        judge_prompt=templates.digest(*JUDGE_TEMPLATES),
        user_prompt=chosen.user_prompt,
        loops=of_loops(plan.loops_of(test) for planned in plan.suites for test in planned.tests),
    )


def _agents(job: Job, plan: Plan) -> str:
    """A digest of the agents of a plan."""
    suites = [planned.suite for planned in plan.suites]
    agents = [[s.adapter, s.adapter_options, s.agent_id, s.base_url, s.model] for s in suites]
    return digest(job.redactor.json(agents))
