"""`run --audit-user`: simulated users that break character, in results, recordings and rejudged runs."""

import json

import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite

from ci_evals import create_adapter, load_suite, run_suite
from ci_evals.conversation import simulated_user
from ci_evals.gate.policy import Policy
from ci_evals.runner import Participants
from ci_evals.support import templates

pytestmark = pytest.mark.slow

SECRET = "tenant-4711-blue"
TEST = {
    "name": "Cancels a plan",
    "userInfo": {"tenant": "${TENANT}"},
    "guidelines": "You want to cancel your plan at ${TENANT}.",
    "turns": [{"user": "auto"}],
    "maxTurns": 1,
    "loops": 3,
    "evaluations": [{"criterion": "It is cancelled"}],
}
OUT_OF_CHARACTER = f"As a simulated user of {SECRET}, I want to cancel."
PASS = fakes.judge_answer("pass", "Yes.")
KEPT = json.dumps({"reasoning": "Fine.", "violations": [], "verdict": "kept"})
DOG = {"turn": 1, "quote": "my dog at ***", "what": "it wants another thing"}
BROKE = json.dumps({"reasoning": "It is no dog.", "violations": [DOG], "verdict": "broke"})


USERS = (OUT_OF_CHARACTER, OUT_OF_CHARACTER, f"Cancel my dog at {SECRET}.", "Hi, cancel it.")


def models():
    """The user breaks character twice in the first trial, once in the second; the third is not audited."""
    lines = iter((*USERS, "Please cancel my plan."))

    def answer(asked):
        if '"written_by"' in asked.text:
            return BROKE if "dog" in asked.text else "Well." if "Please" in asked.text else KEPT
        return PASS if asked.wants_json else next(lines)

    return answer


def trials_of(results):
    return results["suites"][0]["tests"][0]["trials"]


def test_users_that_broke_character_are_excluded_in_run_replay_and_rejudge(tmp_path):
    suite = write_suite(tmp_path, TEST)
    with world.agent(lambda _: world.message("I see.", workflows=[])) as agent, world.llm(models()) as llm:
        own = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "TENANT": SECRET}
        options = ("--audit-user", "--min-score=60", "--max-invalid-users=1", "--retries=0", "--record=tape")
        ran = ci_evals("run", suite, *options, cwd=tmp_path, env=own | llm.env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    first, second, third = trials_of(results)
    assert [trial["status"] for trial in (first, second, third)] == ["invalid_user", "completed", "completed"]
    assert (first["score"], first["findings"], len(first["turns"])) == (None, [], 1)
    assert [violation["rule"] for violation in first["userAudit"]["violations"]] == ["meta"]
    violation = {"rule": "audit", "turn": 1, "text": "my dog at ***", "reason": "it wants another thing"}
    assert second["attempts"][0]["userAudit"]["violations"] == [violation]
    assert [trial["userAudit"]["byModel"] for trial in (first, second, third)] == [None, True, False]
    broken = results["userChecks"].pop("violationRate")
    assert (round(broken["value"], 3), broken["count"]) == (0.667, 3)
    counts = {"conversations": 5, "rerun": 2, "invalid": 1, "audited": 2, "notAudited": 1}
    assert results["userChecks"] == counts | {"byRule": {"meta": 2, "audit": 1}}
    assert (results["counts"]["invalidUsers"], results["counts"]["errors"]) == (1, 0)
    usage = {role["role"]: role for role in results["usage"]["byRole"]}
    assert (usage["user"]["calls"], usage["auditor"]["calls"], usage["judge"]["calls"]) == (5, 4, 2)
    assert usage["auditor"]["costUsd"] > 0
    written = [path for path in tmp_path.rglob("*") if path.is_file() and "suite.json" not in path.name]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]

    replay = ("--replay=tape", "--output-dir=again/results", *options[1:4])
    again = ci_evals("run", suite, *replay, cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    replayed = read_results(tmp_path / "again")
    assert replayed["userChecks"] == results["userChecks"] | {"violationRate": broken}
    assert [trial["status"] for trial in trials_of(replayed)] == ["invalid_user", "completed", "completed"]

    with world.llm(models()) as llm:
        rejudge = ("rejudge", "results", "--output-dir=judged/results", "--quiet")
        judged = ci_evals(*rejudge, cwd=tmp_path, env=llm.env)
    assert judged.returncode == 3, judged.stdout + judged.stderr
    rejudged = read_results(tmp_path / "judged")
    assert len(llm.asked) == 2
    assert rejudged["userChecks"] == results["userChecks"] | {"violationRate": broken}
    assert trials_of(rejudged)[0]["userAudit"] == first["userAudit"]
    assert "the simulated user broke character twice in a row" in rejudged["gate"]["reasons"][0]


async def test_library_audits_user_with_model_of_suite(tmp_path, monkeypatch):
    own = {key: value for key, value in TEST.items() if key != "userInfo"} | {"guidelines": "Cancel it."}
    name = write_suite(tmp_path, own, apiKey="key-of-the-agent", auditModel="looker")
    with world.agent(lambda _: world.message("I see.")) as agent, world.llm(models()) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        adapter = create_adapter(llm_key=llm.key, base_url=agent.url, agent_key=agent.key, audit_user=True)
        policy = Policy(min_score=60, max_invalid_users=1)
        results = await run_suite(adapter, load_suite(str(tmp_path / name)), policy=policy, judge_check="off")
    assert (results.gate.exit_code, results.user_checks.invalid) == (0, 1)
    assert {asked.model for asked in llm.asked if '"written_by"' in asked.text} == {"looker"}


async def test_audit_model_is_part_of_user_prompt_digest(tmp_path):
    """It decides which trials count."""
    plan = TEST | {"userInfo": {}, "guidelines": "Cancel it.", "loops": 1}
    suite = load_suite(str(tmp_path / write_suite(tmp_path, plan, apiKey="key-of-the-agent")))
    digests = []
    for model in (None, "small", "large"):
        user, judge = fakes.ScriptedLLM(["Cancel it."], model="u"), fakes.ScriptedLLM([PASS])
        auditor = model and fakes.ScriptedLLM([KEPT], model)
        participants = Participants(fakes.ScriptedAgent(["I see."]), user, judge, audit_llm=auditor)
        results = await run_suite(participants, suite, judge_check="off")
        digests.append(results.run.digests.user_prompt)
    assert (digests[0], len(set(digests))) == (templates.digest(*simulated_user.TEMPLATES), 3)


def test_audited_run_is_not_resumed_without_audit(tmp_path):
    """Its trials would count by two rules."""
    suite = write_suite(tmp_path, TEST | {"userInfo": {}, "guidelines": "Cancel it.", "loops": 1})
    with world.agent(lambda _: world.message("I see.")) as agent, world.llm(models()) as llm:
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | llm.env
        ran = ci_evals("run", suite, "--audit-user", "--no-gate", cwd=tmp_path, env=env)
        again = ci_evals("run", suite, "--no-gate", "--resume=results", cwd=tmp_path, env=env)
    assert (ran.returncode in {0, 3}, again.returncode) == (True, 2), ran.stderr
    assert "it differs in the audit of the user (--audit-user, auditModel)" in again.stderr


def test_plan_counts_calls_of_auditor(tmp_path):
    own = {"agentId": "a", "apiKey": "k" * 12, "auditModel": "nobody-knows-it"}
    suite = write_suite(tmp_path, TEST | {"userInfo": {}, "guidelines": "g"}, **own)
    plain = ci_evals("plan", suite, cwd=tmp_path)
    audited = ci_evals("plan", suite, "--audit-user", cwd=tmp_path)
    assert "judge 3\n" in plain.stdout
    assert "judge 3, auditor 3\n" in audited.stdout
    assert "no price for nobody-knows-it" in audited.stdout
