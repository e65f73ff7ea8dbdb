"""`plan`: the tests that would run, and an estimate of what they take."""

from dataclasses import replace

from ci_evals.cli.commands import forecast
from ci_evals.cli.files.suite_loading import load_suites
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run.arms import arms_of, with_agents
from ci_evals.cli.run.rounds import looks_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.models import models_asked
from ci_evals.cli.settings.suite_commands import PlanSettings
from ci_evals.domain import numbers
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.grading import control
from ci_evals.job.stages import first_plan
from ci_evals.planning.selection import Selection
from ci_evals.planning.selection import plan as make_plan
from ci_evals.planning.workload import Workload, of_plan, of_test
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
    for suite in alone.suites:
        context.show(sanitize.log_line(f"{suite.suite.name} ({suite.file})"))
        context.show(_table(alone, suite, connections, context) + "\n")
    for warning in connections.warnings(planned):
        context.console.say(f"warning: {warning}")
    score = null_score(test for suite in alone.suites for test in suite.tests)
    if score is not None:
        context.show(in_words(score))
    total = of_plan(planned)
    agent, user, judge = _calls(total, connections)
    audits = f", auditor {total.auditor_calls}" if connections.audit_user and not connections.offline else ""
    check = settings.judge_check
    controls = len(control.questions()) * len(forecast.checked_judges(planned, connections, check))
    checked = f", judge check {controls}" if controls else ""
    meanings = (
        f", embedding model {total.embedder_calls}" if connections.embedder and total.embedder_calls else ""
    )
    if total.fewest_turns < total.turns:
        context.show(_WHO_ENDS)
    context.show(
        f"{_tests(planned)}, {_trials(fewest, total)}, "
        f"{numbers.up_to(total.fewest_turns, total.turns, 'turn')}; "
        f"{total.strict} strict and {total.judge_calls} judged evaluations\n"
        f"calls at most: agent {agent}, simulated user {user}, judge {judge}{checked}{audits}{meanings}\n"
        f"{context.wait(forecast.lines((fewest, planned), connections, prices, settings.parallel, check))}"
    )


def _tests(planned: Plan) -> str:
    agents = len(planned.arms)
    tests = numbers.count(sum(len(suite.tests) for suite in planned.arm(0).suites), "test")
    return f"{tests} for each of {agents} agents" if agents > 1 else tests


def _trials(fewest: Plan, total: Workload) -> str:
    return numbers.up_to(len(fewest.trials), total.trials, "trial")


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
