"""Claims in whole runs: what the results hold, what is judged again, and what a suite may say."""

import json

import fakes
import pytest
import report_texts
from seeded_judges import prompt_block

from ci_evals import run_suite
from ci_evals.domain.errors import SuiteError
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import ToolCall
from ci_evals.extension_support.rejudging import RejudgeJob, rejudge
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.gate.policy import Policy
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.reports import report_files
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor

CLAIMS = {"criterion": "It does what it says, and says what it did", "claims": "backed"}
POLITE = {"criterion": "It is polite"}
REFUND = ToolCall(name="refund", arguments={"order": "4711"}, status="ok")
SAYS = "I have refunded order 4711."


def suite_with(*evaluations: dict, lines: int = 1) -> dict:
    turns = [{"user": "Refund order 4711."}] * lines
    test = {"name": "Refund", "guidelines": "g", "turns": turns, "maxTurns": lines}
    return {"name": "S", "adapter": "demo", "tests": [{**test, "evaluations": [*evaluations]}]}


def judge() -> fakes.ScriptedLLM:
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
async def test_claim_of_refund_passes_only_with_refund_call(calls, passed):
    results = await run_claims(suite_with(CLAIMS, POLITE), judge(), fakes.reply(SAYS, tool_calls=calls))
    claims, polite = results.suites[0].tests[0].trials[0].findings
    assert (claims.kind, claims.claims, polite.claims) == ("judged", "backed", None)
    assert results.gate.passed is passed
    junit = "".join(
        text for path, text in report_texts.files_of_run(results).items() if path.endswith(".xml")
    )
    assert f"{CLAIMS['criterion']} (judged claims): " in junit


@pytest.mark.parametrize("calls", [(REFUND,), ()])
async def test_rejudging_asks_same_questions_about_claims(calls):
    first, other = judge(), judge()
    results = await run_claims(suite_with(POLITE, CLAIMS), first, fakes.reply(SAYS, tool_calls=calls))
    again = await rejudged(results, other)
    assert sorted(map(repr, other.prompts)) == sorted(map(repr, first.prompts))
    assert again.suites[0].tests[0].trials[0].findings == results.suites[0].tests[0].trials[0].findings


@pytest.mark.parametrize(("expected", "cause"), [(True, None), (False, "not_reached")])
async def test_claims_before_expected_handover_are_decided(expected, cause):
    """Lines of the user were never sent; judged again, the claims count too."""
    hand_over = [{"criterion": "Hands over", "strict": "escalated"}] if expected else []
    handed = fakes.reply(SAYS, tool_calls=(REFUND,), workflows=("CONVERSATION_FORWARDING", "refund"))
    results = await run_claims(suite_with(*hand_over, CLAIMS, lines=2), judge(), handed)
    for one in (results, await rejudged(results, judge())):
        assert one.suites[0].tests[0].trials[0].findings[-1].cause == cause


async def rejudged(results: Results, llm: fakes.ScriptedLLM) -> Results:
    work = RejudgeJob(results, provider="openai", policy=Policy(), redactor=Redactor())
    return (await rejudge(work, fakes.Judges(llm))).results


async def test_judge_check_asks_about_claims_only_if_suite_has_claims():
    reply = fakes.reply(SAYS, tool_calls=(REFUND,))
    asked = []
    for evaluations in ([POLITE], [POLITE, CLAIMS]):
        results = await run_claims(suite_with(*evaluations), judge(), reply, judge_check="always")
        asked.append(results.judge_checks[0].asked)
        assert not results.judge_checks[0].passed
    assert asked == [16, 28]


def test_claims_criterion_may_contain_and_but_duplicates_cause_warning():
    """Its words are a name: they may hold an 'and'."""
    text = json.dumps(suite_with(CLAIMS, {**CLAIMS, "criterion": "In other words"}))
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
def test_invalid_claims_fields_are_rejected(fields, text):
    with pytest.raises(SuiteError) as caught:
        load(json.dumps(suite_with({"criterion": "c", **fields})), "s.json", Reading({}))
    assert text in str(caught.value)
