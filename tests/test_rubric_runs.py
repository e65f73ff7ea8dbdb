"""Graded criteria and claims in whole runs: what the results hold, and what is judged again."""

import json
import re

import fakes
import pytest
import report_texts
import world
from commands import ci_evals, read_results, write_suite
from seeded_judges import prompt_block, seeded_chance

from ci_evals import run_suite
from ci_evals.domain.errors import SuiteError
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import ToolCall
from ci_evals.extension_support.rejudging import RejudgeJob, rejudge
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.gate.policy import Policy
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.ports import Prompt
from ci_evals.reports import report_files
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor

SECRET = "tenant-4711-blue"
LEVELS = [{"score": step / 4, "name": f"level {step}", "description": f"Number {step}."} for step in range(5)]
WORK = {
    "criterion": "The work is well made", "rubric": LEVELS,
    "dimensions": ["clarity", {"name": "tact", "description": "Kind to ${TENANT}?", "weight": 3}],
    "weight": 3, "passAt": 0.5,
}  # fmt: skip
BRIEF = {"criterion": "It is brief"}


def suite_with(*evaluations: dict, tests: int = 1) -> dict:
    test = {"guidelines": "g", "turns": [{"user": "hi"}], "maxTurns": 1, "evaluations": list(evaluations)}
    return {"name": "S", "adapter": "demo", "tests": [{"name": str(n), **test} for n in range(tests)]}


def graded(text: str, level: int) -> str:
    """A judge's answer: this level in every dimension that the prompt's rubric has."""
    grade = {"reason": "So.", "evidence": [], "level": f"level {level}"}
    dimensions = [{"dimension": one["dimension"]} | grade for one in prompt_block(text, "rubric")]
    answer = {"reasoning": "All in all.", "dimensions": dimensions, "rests_on": "absence", "looked_at": [1]}
    return json.dumps(answer)


def judge(level: int) -> fakes.ScriptedLLM:
    """Names this level of every dimension, and passes every plain criterion."""
    plain = fakes.judge_answer("pass", "Yes.")
    return fakes.ScriptedLLM(lambda asked: graded(asked.text, level) if "<rubric>" in asked.text else plain)


async def run_rubric(
    suite: dict, *judges: fakes.ScriptedLLM, votes: int = 1, script=("Done.",), **fields
) -> Results:
    """A run, as it stands in its file."""
    agent = fakes.ScriptedAgent(script)
    participants = Participants(agent, judge_llm=None, judge_panel=judges, judge_votes=votes)
    fields |= {"retries": 0, "policy": Policy(max_errors=99), "judge_check": "off"}
    made = await run_suite(participants, suite, **fields)
    return report_files.load(report_texts.results_json_text(made), "_results.json")


@pytest.fixture(autouse=True)
def tenant(monkeypatch):
    monkeypatch.setenv("TENANT", SECRET)


async def test_grade_counts_in_score_and_pass_at_decides_outcome():
    results = await run_rubric(suite_with(WORK, BRIEF), judge(3))
    (test,) = results.suites[0].tests
    finding = test.trials[0].findings[0]
    assert (finding.kind, finding.outcome, finding.grade.score) == ("judged", "passed", 0.75)
    assert (test.score, test.passed, test.pass_rate) == (100 * (3 * 0.75 + 1) / 4, True, 1)
    low = (await run_rubric(suite_with(WORK, BRIEF), judge(1))).suites[0].tests[0]
    assert (low.score, low.passed, low.pass_rate) == (100 * (3 * 0.25 + 1) / 4, False, 0)


async def test_rejudging_asks_same_rubric_without_secrets():
    first, other = judge(3), judge(1)
    results = await run_rubric(suite_with(BRIEF, WORK), first)
    (rubric,) = results.suites[0].tests[0].rubrics.items()
    actual = (rubric[0], rubric[1].pass_at, [one.name for one in rubric[1].dimensions])
    assert actual == (2, 0.5, ["clarity", "tact"])
    assert "Kind to ***?" in repr(rubric)
    work = RejudgeJob(results, provider="openai", policy=Policy(), redactor=Redactor())
    again = (await rejudge(work, fakes.Judges(other))).results
    assert sorted(map(repr, other.prompts)) == sorted(map(repr, first.prompts))
    assert SECRET not in repr(other.prompts) + report_texts.results_json_text(results)
    (test,) = again.suites[0].tests
    assert [finding.outcome for finding in test.trials[0].findings] == ["passed", "failed"]
    actual = (test.trials[0].findings[1].grade.score, test.rubrics)
    assert actual == (0.25, results.suites[0].tests[0].rubrics)


async def test_grade_without_trace_or_judge_is_undecided_and_fails_gate():
    steps = {"criterion": "It goes about it well", "dimensions": ["reasoning"]}
    silent = {"workflows": None, "params": None, "rules": None, "integrations": None, "error_response": None}
    results = await run_rubric(suite_with(steps, BRIEF), judge(4), script=[fakes.reply("Done.", **silent)])
    finding = results.suites[0].tests[0].trials[0].findings[0]
    assert (finding.outcome, finding.cause, finding.grade) == ("undecided", "no_evidence", None)
    assert (results.score, results.gate.checks[0].seen_if_undecided_failed) == (100, 50)
    assert not results.gate.passed
    results = await run_rubric(suite_with(WORK, BRIEF))
    findings = results.suites[0].tests[0].trials[0].findings
    assert [(one.outcome, one.cause, one.grade) for one in findings] == [("undecided", "no_judge", None)] * 2


def noisy(p: float) -> fakes.ScriptedLLM:
    """A judge that names the level that the agent tells, or with the chance p each the one above or below."""

    def answer(prompt: Prompt) -> str:
        items = prompt_block(prompt.text, "conversation")[0]["agent"]
        drawn = seeded_chance(items, prompt.sample_id)
        return graded(prompt.text, int(items[-1]) + (drawn < p) - (drawn > 1 - p))

    return fakes.ScriptedLLM(answer)


TESTS, LOOPS, P = 60, 2, 0.2


def truth(number: object) -> int:
    """The level that the agent has in a test: one in the middle, so that a judge can err both ways."""
    return 1 + int(3 * seeded_chance("truth", number))


def at_true_level(test, _heard) -> str:
    return f"Test {test.name} is at level {truth(test.name)}"


@pytest.mark.parametrize(("votes", "err"), [(1, 2 * P), (3, 2 * (3 * P**2 - 2 * P**3))])
async def test_interval_contains_true_score_and_votes_err_as_often_as_computed(votes, err):
    """One vote errs as often as it should, three as rarely as computed."""
    suite = suite_with({"criterion": "c", "rubric": LEVELS}, tests=TESTS)
    results = await run_rubric(suite, noisy(P), votes=votes, loops=LOOPS, parallel=20, script=at_true_level)
    true = sum(25 * truth(number) for number in range(TESTS)) / TESTS
    assert results.interval.low <= true <= results.interval.high
    wrong = [
        round(4 * trial.findings[0].grade.score) != truth(test.name)
        for test in results.suites[0].tests
        for trial in test.trials
    ]
    spread = 3 * (err * (1 - err) / len(wrong)) ** 0.5
    assert len(wrong) == TESTS * LOOPS
    assert abs(sum(wrong) / len(wrong) - err) < spread


@pytest.mark.slow
def test_median_vote_of_panel_grades_rubric(tmp_path):
    def answers(asked):
        return graded(asked.text, {"low": 1, "mid": 2, "high": 4}[asked.model])

    reply = world.message("Done", workflows=[])
    with world.agent(lambda heard: reply) as agent, world.llm(answers) as models:
        suite = write_suite(tmp_path, {"evaluations": [WORK], "userInfo": {"tenant": SECRET}})
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "TENANT": SECRET} | models.env
        ran = ci_evals("run", suite, "--judge-panel=high,low,mid", cwd=tmp_path, env=env)
    assert ran.returncode == 1, ran.stderr
    (finding,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"][0]["findings"]
    actual = (finding["outcome"], finding["grade"]["score"], read_results(tmp_path)["score"])
    assert actual == ("passed", 0.5, 50)
    actual = [(vote["model"], vote["grade"]["score"]) for vote in finding["votes"]]
    assert actual == [("high", 1), ("low", 0.25), ("mid", 0.5)]
    kept = "".join(path.read_text() for path in (tmp_path / "results").rglob("*.*") if path.suffix != ".html")
    assert not re.search(SECRET, kept)


CLAIMS = {"criterion": "It does what it says, and says what it did", "claims": "backed"}
POLITE = {"criterion": "It is polite"}
REFUND = ToolCall(name="refund", arguments={"order": "4711"}, status="ok")
SAYS = "I have refunded order 4711."


def claims_suite(*evaluations: dict, lines: int = 1) -> dict:
    turns = [{"user": "Refund order 4711."}] * lines
    test = {"name": "Refund", "guidelines": "g", "turns": turns, "maxTurns": lines}
    return {"name": "S", "adapter": "demo", "tests": [{**test, "evaluations": [*evaluations]}]}


def claims_judge() -> fakes.ScriptedLLM:
    """Passes every plain criterion, and claims the first call, or none, for the refund."""

    def answer(prompt):
        if prompt.schema_name != "claims":
            return fakes.judge_answer("pass", "Yes.")
        turns = []
        for turn in prompt_block(prompt.text, "conversation")[:-1]:
            call = min(1, len(prompt_block(prompt.text, "calls")))
            claim = {"quote": SAYS, "about": "4711", "call": call, "backed": bool(call)}
            turns.append({"turn": turn["turn"], "claims": [claim] if SAYS in turn["agent"] else []})
        return json.dumps({"reasoning": "It claims a refund.", "turns": turns})

    return fakes.ScriptedLLM(answer)


async def run_claims(suite: dict, llm: fakes.ScriptedLLM, reply, **fields) -> Results:
    """A run, as it stands in its file."""
    participants = Participants(fakes.ScriptedAgent([reply]), judge_llm=llm)
    made = await run_suite(participants, suite, retries=0, **{"judge_check": "off"} | fields)
    return report_files.load(report_texts.results_json_text(made), "_results.json")


@pytest.mark.parametrize(("calls", "passed"), [((REFUND,), True), ((), False)])
async def test_claim_of_refund_passes_only_with_refund_call_also_if_judged_again(calls, passed):
    first, other = claims_judge(), claims_judge()
    results = await run_claims(claims_suite(CLAIMS, POLITE), first, fakes.reply(SAYS, tool_calls=calls))
    claims, polite = results.suites[0].tests[0].trials[0].findings
    assert (claims.kind, claims.claims, polite.claims) == ("judged", "backed", None)
    assert results.gate.passed is passed
    files = report_texts.files_of_run(results).items()
    junit = "".join(text for path, text in files if path.endswith(".xml"))
    assert f"{CLAIMS['criterion']} (judged claims): " in junit
    again = await rejudged(results, other)
    assert sorted(map(repr, other.prompts)) == sorted(map(repr, first.prompts))
    assert again.suites[0].tests[0].trials[0].findings == results.suites[0].tests[0].trials[0].findings


@pytest.mark.parametrize(("expected", "cause"), [(True, None), (False, "not_reached")])
async def test_claims_before_handover_are_decided_only_if_test_expects_it(expected, cause):
    """Lines of the user were never sent; judged again, the claims count too."""
    hand_over = [{"criterion": "Hands over", "strict": "escalated"}] if expected else []
    handed = fakes.reply(SAYS, tool_calls=(REFUND,), workflows=("CONVERSATION_FORWARDING", "refund"))
    results = await run_claims(claims_suite(*hand_over, CLAIMS, lines=2), claims_judge(), handed)
    for one in (results, await rejudged(results, claims_judge())):
        assert one.suites[0].tests[0].trials[0].findings[-1].cause == cause


async def rejudged(results: Results, llm: fakes.ScriptedLLM) -> Results:
    work = RejudgeJob(results, provider="openai", policy=Policy(), redactor=Redactor())
    return (await rejudge(work, fakes.Judges(llm))).results


async def test_judge_check_asks_about_claims_only_if_suite_has_claims():
    reply = fakes.reply(SAYS, tool_calls=(REFUND,))
    asked = []
    for evaluations in ([POLITE], [POLITE, CLAIMS]):
        results = await run_claims(claims_suite(*evaluations), claims_judge(), reply, judge_check="always")
        asked.append(results.judge_checks[0].asked)
        assert not results.judge_checks[0].passed
    assert asked == [16, 28]


def test_claims_criterion_with_word_and_causes_no_warning_but_duplicate_does():
    """Its words are a name: they may hold an 'and'."""
    text = json.dumps(claims_suite(CLAIMS, {**CLAIMS, "criterion": "In other words"}))
    problems = [problem.message for problem in weaknesses(load(text, "s.json", Reading({})))]
    assert not any("two things" in message for message in problems)
    assert "asks the same as evaluations[0] of this test" in problems


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"claims": "true"}, "claims"),
        ({"claims": "backed", "rubric": []}, "belongs to a criterion with a rubric"),
        ({"claim": "backed"}, "did you mean 'claims'?"),
        ({"strict": "escalated", "claims": "backed"}, "belongs to a criterion with 'claims'"),
    ],
)
def test_invalid_claims_field_is_rejected_with_reason(fields, text):
    with pytest.raises(SuiteError) as caught:
        load(json.dumps(claims_suite({"criterion": "c", **fields})), "s.json", Reading({}))
    assert text in str(caught.value)
