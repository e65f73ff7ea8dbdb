"""Votes and panels in whole runs, by judges whose errors are known."""

import re
from collections.abc import Callable

import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite
from seeded_judges import prompt_block, seeded_chance

from ci_evals import load_suite, run_suite
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.verdict import Cause, Finding, Outcome
from ci_evals.ports import Prompt
from ci_evals.runner import Participants
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.support.digest import of_models

ERROR = 0.1


def named_first(prompt: Prompt) -> str:
    (result,) = re.findall(r'"verdict" \("(pass|fail)", "(?:pass|fail)" or "cannot_tell"\)', prompt.system)
    return result


def truth(prompt: Prompt) -> str:
    """The truth, as the criterion tells those who look."""
    return prompt_block(prompt.text, "criterion").split()[0]


def quoting(words: str) -> str:
    return fakes.judge_answer("pass", "So.", (1, words))


def erring(prompt: Prompt) -> str:
    """A judge that says the opposite now and then, whoever asks."""
    right = truth(prompt)
    wrong_share = seeded_chance(prompt.text, prompt.system, prompt.sample_id) < ERROR
    return fakes.judge_answer({"pass": "fail", "fail": "pass"}[right] if wrong_share else right)


async def run(tmp_path, judge: Callable[[Prompt], str], votes: int, criteria: int = 15, tests: int = 40):
    """A run of criteria of which every third is not met."""
    evaluations = [{"criterion": f"{'pass' if c % 3 else 'fail'} {c}"} for c in range(criteria)]
    texts = [
        {"name": f"t{t}", "guidelines": f"g{t}", "turns": [{"user": "hi"}], "evaluations": evaluations}
        for t in range(tests)
    ]
    suite = load_suite(tmp_path / write_suite(tmp_path, *texts, maxTurns=1, apiKey="key-123456"))
    llm = fakes.ScriptedLLM(judge, "m")
    participants = Participants(fakes.ScriptedAgent(["Hello there"]), judge_panel=[llm], judge_votes=votes)
    return await run_suite(participants, suite, parallel=8, judge_check="off"), llm


def findings(results: Results) -> list[Finding]:
    trials = [trial for test in results.tests for trial in test.trials]
    return [finding for trial in trials for finding in trial.findings]


def wrong_share(results: Results) -> float:
    words = {"passed": "pass", "failed": "fail"}
    wrong = [f.criterion.split()[0] != words[f.outcome] for f in findings(results)]
    return sum(wrong) / len(wrong)


async def test_three_votes_remove_most_random_judge_errors_and_agree_as_computed(tmp_path):
    """A judge that errs in 10 % of its votes errs in 2.8 % of the verdicts."""
    one, _ = await run(tmp_path, erring, 1)
    three, llm = await run(tmp_path, erring, 3)
    assert wrong_share(one) == pytest.approx(ERROR, abs=0.04)
    assert wrong_share(three) == pytest.approx(3 * ERROR**2 - 2 * ERROR**3, abs=0.0175)
    split, passes = 2 * ERROR * (1 - ERROR), (2 / 3) * (1 - ERROR) + (1 / 3) * ERROR
    whole = three.vote_agreement.whole
    assert whole.share.low <= 1 - split <= whole.share.high
    assert whole.alpha.low <= 1 - split / (2 * passes * (1 - passes)) <= whole.alpha.high
    asked = [len(finding.votes) for finding in findings(three)]
    assert sum(asked) == len(llm.prompts)
    assert sum(asked) / len(asked) == pytest.approx(2 + split, abs=0.06)  # a third vote where two disagree
    assert (one.vote_agreement, findings(one)[0].votes, findings(one)[0].agreement) == (None, None, None)
    actual = (three.suites[0].judge_model, three.suites[0].judge_panel, three.suites[0].judge_votes)
    assert actual == ("m", (), 3)
    assert one.run.digests.models == of_models(None, [("m", None, None)])  # as in earlier runs
    assert three.run.digests.models != one.run.digests.models
    compared = RunComparer(three, one).comparison()
    assert not compared.comparable
    assert compared.reasons == ("the judge changed from m to m with 3 votes",)


def test_even_number_of_judge_votes_is_rejected():
    with pytest.raises(UsageError, match="judge_votes=2: it takes an odd number"):
        Participants(fakes.ScriptedAgent(), judge_votes=2)


async def test_votes_reduce_order_bias_of_judge(tmp_path):
    """The order changes from vote to vote."""

    def lazy(prompt: Prompt) -> str:
        leans = seeded_chance("lazy", prompt.text, prompt.sample_id) < 0.3
        return fakes.judge_answer(named_first(prompt) if leans else truth(prompt))

    one, _ = await run(tmp_path, lazy, 1, tests=20)
    three, _ = await run(tmp_path, lazy, 3, tests=20)
    assert wrong_share(one) == pytest.approx(0.3 / 3, abs=0.05)  # every third criterion is not met
    assert wrong_share(three) == pytest.approx(0.3**2 / 3, abs=0.03)


async def test_verified_quotes_are_kept_and_invented_ones_leave_verdict_undecided(tmp_path):
    results, llm = await run(tmp_path, lambda _: quoting("I never said this"), 3, criteria=1, tests=1)
    (finding,) = findings(results)
    assert (finding.outcome, finding.cause) == (Outcome.UNDECIDED, Cause.VOID_ANSWER)
    assert "quoted words that are not in turn 1 (asked twice)" in finding.reason
    assert len(llm.prompts) == 4  # two votes, each asked for twice: a third could decide nothing
    assert not results.gate.passed
    results, _ = await run(tmp_path, lambda _: quoting("hello \u2026 there"), 1, criteria=1, tests=1)
    (finding,) = findings(results)
    assert [(quote.turn, quote.text) for quote in finding.quotes] == [(1, "hello \u2026 there")]
    assert (finding.outcome, finding.evidence) == (Outcome.PASSED, (1,))


@pytest.mark.parametrize("votes", [1, 3])
async def test_cannot_tell_verdict_prevents_gate_pass(tmp_path, votes):
    def unsure(prompt: Prompt) -> str:
        return fakes.judge_answer("cannot_tell" if truth(prompt) == "fail" else "pass")

    results, _ = await run(tmp_path, unsure, votes, criteria=12, tests=1)
    causes = {finding.cause for finding in findings(results) if finding.outcome is Outcome.UNDECIDED}
    assert (results.score, causes) == (100, {Cause.CANNOT_TELL})
    assert not results.gate.passed


async def test_each_vote_has_its_own_prompt_order(tmp_path):
    def order(prompt: Prompt) -> str:
        return " ".join(re.findall(r"^<(\w+)>$", prompt.text, re.MULTILINE))

    disagreeing = iter(["pass", "fail", "pass"])
    _, llm = await run(tmp_path, lambda _: fakes.judge_answer(next(disagreeing)), 3, criteria=1, tests=1)
    assert [(order(prompt), named_first(prompt), prompt.sample_id) for prompt in llm.prompts] == [
        ("background conversation criterion", "pass", "1/0/0"),
        ("conversation background criterion", "fail", "1/1/0"),
        ("background conversation criterion", "pass", "1/2/0"),
    ]
    for prompt in llm.prompts:
        verdicts = prompt.schema["properties"]["verdict"]["enum"]
        assert (verdicts[0], verdicts[2]) == (named_first(prompt), "cannot_tell")
        met, not_met = (prompt.system.index(f'"{v}" if the criterion') for v in ("pass", "fail"))
        assert (met < not_met) is (named_first(prompt) == "pass")
    _, llm = await run(tmp_path, lambda _: fakes.judge_answer("pass"), 1, criteria=1, tests=1)
    assert order(llm.prompts[0]) == "background conversation criterion"


PANEL = ["--judge-panel=small,large", "--min-score=0", "--quiet"]
TESTS = [
    {"name": name, "turns": [{"user": "hi"}], "evaluations": [{"criterion": c} for c in ("kind", "brief")]}
    for name in "ab"
]


def by_panel(asked: world.ModelRequest) -> str:
    """Small and large disagree about what is brief."""
    fails = asked.model == "small" and "brief" in asked.text
    return fakes.judge_answer("fail" if fails else "pass", f"By {asked.model}.")


def without_times(results: dict) -> list:
    return [
        [(f["outcome"], f["reason"], f["votes"], f["agreement"]) for f in trial["findings"]]
        for test in results["suites"][0]["tests"]
        for trial in test["trials"]
    ]


@pytest.mark.slow
def test_panel_votes_are_same_in_run_replay_and_rejudge(tmp_path):
    with world.agent(lambda heard: world.message("Hi", workflows=[])) as agent, world.llm(by_panel) as models:
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | models.env
        suite = write_suite(tmp_path, *TESTS, maxTurns=1)
        ran = ci_evals("run", suite, *PANEL, "--record=tape", cwd=tmp_path, env=env)
        assert ran.returncode == 0, ran.stderr
        asked = [one.model for one in models.asked]
        again = ["--output-dir=again/results", *PANEL[1:]]
        again = ci_evals("rejudge", "results", *again, cwd=tmp_path, env=env)
        assert again.returncode == 0, again.stderr
        single = ["--judge-model=large", "--judge-votes=1", "--output-dir=single/results", *PANEL[1:]]
        once = ci_evals("rejudge", "results", *single, cwd=tmp_path, env=env)
        assert once.returncode == 0, once.stderr
    results = read_results(tmp_path)
    kind, brief = results["suites"][0]["tests"][0]["trials"][0]["findings"]
    assert [vote["model"] for vote in kind["votes"]] == ["small", "large"]
    assert [vote["model"] for vote in brief["votes"]] == ["small", "large", "small"]
    assert (kind["outcome"], kind["agreement"]) == ("passed", 1)
    assert (brief["outcome"], brief["reason"], brief["agreement"]) == ("failed", "By small.", 2 / 3)
    assert (asked.count("small"), asked.count("large")) == (6, 4)
    used = results["suites"][0]["tests"][0]["trials"][0]["usage"]
    actual = [(one["role"], one["model"], one["calls"]) for one in used]
    assert actual == [("judge", "small", 3), ("judge", "large", 2)]
    suite_told = results["suites"][0]
    assert (suite_told["judgePanel"], suite_told["judgeVotes"]) == (["small", "large"], 3)
    fields = results["voteAgreement"]
    actual = (fields["votes"], fields["models"], fields["whole"]["share"]["value"])
    assert actual == (3, ["large", "small"], 0.5)
    assert not fields["whole"]["low"]  # 2 of 4 verdicts say too little
    options = ("--replay=tape", "--output-dir=replayed/results", *PANEL[1:])
    replayed = ci_evals("run", suite, *options, cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stderr
    for folder in ("replayed", "again"):
        other = read_results(tmp_path / folder)
        assert without_times(other) == without_times(results)
        assert other["run"]["digests"]["models"] == results["run"]["digests"]["models"]
        assert other["voteAgreement"] == fields
    other = read_results(tmp_path / "single")
    assert (other["suites"][0]["judgePanel"], other["suites"][0]["judgeVotes"]) == ([], 1)
    assert other["voteAgreement"] is None
    assert "by large; before by small, large with 3 votes" in once.stdout
