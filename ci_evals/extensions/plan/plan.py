"""`plan`: the tests that would run, and an estimate of what they take."""

import json
from dataclasses import dataclass, replace

from pydantic import JsonValue

from ci_evals.cli.files.suite_loading import load_suites
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run.arms import arms_of, with_agents
from ci_evals.cli.run.rounds import looks_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import OutputFormat
from ci_evals.cli.settings.models import models_asked
from ci_evals.cli.settings.plan_settings import PlanSettings
from ci_evals.domain import numbers
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.extensions.plan import estimate as estimating
from ci_evals.grading import control
from ci_evals.job.stages import first_plan
from ci_evals.planning.selection import Selection
from ci_evals.planning.selection import plan as make_plan
from ci_evals.planning.workload import Workload, judges_claims, of_plan, of_test
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table
from ci_evals.scoring.null_score import in_words, null_score
from ci_evals.wiring.connections import Connections

_WHO_ENDS = (
    "turns: the simulated user ends a conversation when it has nothing to add; with --provider=offline, "
    "once the agent asks nothing\n"
)


def plan(settings: PlanSettings, context: RunContext) -> None:
    """Show the tests that would run, how many calls at most, and an estimate of tokens, cost and time."""
    if settings.output_format is OutputFormat.JSON:
        context.keep_stdout_for_json()
    trust = FileTrust(settings, GitHubJob.of(settings, context))
    prices = context.prices(settings.prices, settings.provider)()
    connections = models_asked(settings)
    loaded = load_suites(settings, trust)
    looks = looks_of(settings)
    loops = max(looks, default=settings.loops)
    planned = make_plan(loaded, Selection.of(settings.test, settings.tag), loops)
    alone = replace(planned, looks=looks)
    arms = arms_of(settings, trust, masked=True)
    planned = with_agents(alone, arms, settings.gate_arm, unasked=True)
    fewest = first_plan(planned, settings.both_sides, compares=True)
    check = settings.judge_check
    subjects = control.subjects(with_claims=judges_claims(planned))
    judges = estimating.checked_judges(planned, connections, check)
    shown = _Shown(
        alone=alone,
        planned=planned,
        fewest=fewest,
        connections=connections,
        judge_check_calls=len(judges) * sum(len(control.questions(one)) for one in subjects),
        null_score=null_score(test for suite in alone.suites for test in suite.tests),
        estimate=context.wait(
            estimating.estimate((fewest, planned), connections, prices, settings.parallel, check)
        ),
    )
    for warning in connections.warnings(planned):
        context.console.say(f"warning: {warning}")
    if settings.output_format is OutputFormat.JSON:
        context.show_json([json.dumps(context.redactor.json(shown.as_json()), indent=2, ensure_ascii=False)])
    else:
        shown.show(context)


@dataclass(frozen=True)
class _Shown:
    """The parts of what is shown of a plan."""

    alone: Plan
    """The plan of the suites' own agents."""
    planned: Plan
    """The same with further agents: the most that is played."""
    fewest: Plan
    """The least that is played."""
    connections: Connections
    judge_check_calls: int
    null_score: float | None
    estimate: estimating.Estimate

    def show(self, context: RunContext) -> None:
        """Print it for people."""
        for suite in self.alone.suites:
            context.show(sanitize.log_line(f"{suite.suite.name} ({suite.file})"))
            context.show(_table(self.alone, suite, self.connections, context) + "\n")
        if self.null_score is not None:
            context.show(in_words(self.null_score))
        total, connections = of_plan(self.planned), self.connections
        agent, user, judge = _calls(total, connections)
        calls = f"agent {agent}, simulated user {user}, judge {judge}"
        if self.judge_check_calls:
            calls += f", judge check {self.judge_check_calls}"
        if audits := _audits(total, connections):
            calls += f", auditor {audits}"
        if connections.embedder and total.embedder_calls:
            calls += f", embedding model {total.embedder_calls}"
        if total.fewest_turns < total.turns:
            context.show(_WHO_ENDS)
        context.show(
            f"{_tests(self.planned)}, {_trials(self.fewest, total)}, "
            f"{numbers.up_to(total.fewest_turns, total.turns, 'turn')}; "
            f"{total.strict} strict and {total.judge_calls} judged evaluations\n"
            f"calls at most: {calls}\n"
            f"{self.estimate.in_words()}"
        )

    def as_json(self) -> dict[str, JsonValue]:
        """Return it for programs. Ranges are the least and the most."""
        total, estimate, connections = of_plan(self.planned), self.estimate, self.connections
        agent, user, judge = _calls(total, connections)
        dollars = estimate.dollars
        return {
            "suites": [self._suite_as_json(suite) for suite in self.alone.suites],
            "agents": len(self.planned.arms),
            "tests": sum(len(suite.tests) for suite in self.planned.arm(0).suites),
            "trials": [len(self.fewest.trials), total.trials],
            "turns": [total.fewest_turns, total.turns],
            "strict": total.strict,
            "judged": total.judge_calls,
            "nullScore": self.null_score,
            "calls": {
                "agent": agent,
                "user": user,
                "judge": judge,
                "judgeCheck": self.judge_check_calls,
                "auditor": _audits(total, connections),
                "embedder": total.embedder_calls if connections.embedder else 0,
            },
            "estimate": {
                "tokens": [round(estimate.tokens.low), round(estimate.tokens.high)],
                "dollars": [dollars.low, dollars.high] if dollars else None,
                "seconds": [estimate.seconds.low, estimate.seconds.high],
                "unpriced": [*estimate.unpriced],
            },
        }

    def _suite_as_json(self, suite: PlannedSuite) -> JsonValue:
        tests: list[JsonValue] = []
        for test in suite.tests:
            work = of_test(self.alone, suite, test)
            agent, user, judge = _calls(work, self.connections)
            tests.append(
                {
                    "name": test.name,
                    "tags": [*test.tags],
                    "trials": work.trials,
                    "turns": [work.fewest_turns, work.turns],
                    "strict": work.strict,
                    "judged": work.judge_calls,
                    "calls": {"agent": agent, "user": user, "judge": judge},
                }
            )
        return {"name": suite.suite.name, "file": suite.file, "tests": tests}


def _tests(planned: Plan) -> str:
    agents = len(planned.arms)
    tests = numbers.count(sum(len(suite.tests) for suite in planned.arm(0).suites), "test")
    return f"{tests} for each of {agents} agents" if agents > 1 else tests


def _trials(fewest: Plan, total: Workload) -> str:
    return numbers.up_to(len(fewest.trials), total.trials, "trial")


def _audits(work: Workload, connections: Connections) -> int:
    """Return how often a model is asked about the simulated user, at most."""
    if connections.offline:
        return 0
    return work.auditor_calls if connections.audit_user else work.wanted_auditor_calls


def _calls(work: Workload, connections: Connections) -> tuple[int, int, int]:
    """Return the most calls of agent, simulated user and judge."""
    if connections.offline:
        return work.agent_calls, 0, 0
    return work.agent_calls, work.user_calls, work.judge_calls * connections.judge_votes


def _table(plan: Plan, planned: PlannedSuite, connections: Connections, context: RunContext) -> str:
    headers = ["test", "trials", "turns", "strict", "judged", "agent calls", "user", "judge", "tags"]
    rows = []
    for test in planned.tests:
        work = of_test(plan, planned, test)
        turns = numbers.up_to(work.fewest_turns, work.turns)
        counts = (work.trials, turns, work.strict, work.judge_calls)
        # Redacted before anything is cut.
        name, *tags = map(context.redactor.text, (test.name, *test.tags))
        name, listed = sanitize.log_line(name, 200), sanitize.log_line(", ".join(tags), 200)
        rows.append([name, *map(str, counts), *map(str, _calls(work, connections)), listed])
    return table(headers, rows, context.width, names=(0, len(headers) - 1), right=range(1, len(headers) - 1))
