"""Answers of judges in the forms that real models and servers give them, through the command."""

import json

import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

pytestmark = pytest.mark.slow

GOOD = fakes.judge_answer("pass", "Turn 1 greets.", looked_at=[1])
SECRET = "suite-key-7f2d91"


def completion(content, **fields):
    """A completion as OpenAI's API has it."""
    message = {"role": "assistant", "content": content, **fields}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def blocks(*content):
    """A message as Anthropic's API has it."""
    return {"content": list(content), "stop_reason": "end_turn", "usage": {}}


OPENAI = {
    "alone": (completion(GOOD), True),
    "in a fence between words": (completion(f"Here:\n\n```json\n{GOOD}\n```\n\nAsk me for more."), True),
    "after a lone end of thought": (completion(f"Turn 1 greets.\n</think>\n\n{GOOD}"), True),
    "in the reasoning": (completion(None, reasoning_content=GOOD), True),
    "in the reasoning, of another server": (completion("", reasoning=GOOD), True),
    "reasoning beside": (completion(GOOD, reasoning_content="Hm."), True),
    "among words": (completion(f"I say: {GOOD} That is all."), True),
    "words in the reasoning": (completion(None, reasoning_content=f"I say: {GOOD}"), False),
    "two answers": (completion(f"{GOOD}\n{fakes.judge_answer('fail')}"), False),
    "words": (completion("It passes."), False),
}
ANTHROPIC = {
    "alone": (blocks({"type": "text", "text": GOOD}), True),
    "among words": (blocks({"type": "text", "text": f"So: {GOOD}"}), True),
    "as a thought": (blocks({"type": "thinking", "thinking": GOOD}), True),
    "words as a thought": (blocks({"type": "thinking", "thinking": "Hm."}), False),
}
CASES = [
    pytest.param(provider, answer, readable, id=f"{provider}: {name}")
    for provider, cases in (("openai", OPENAI), ("anthropic", ANTHROPIC))
    for name, (answer, readable) in cases.items()
]


def finding_of(folder, server: HTTPServer, provider, answer, *options):
    """The verdict of a judge that answers so."""

    def respond(_: Request) -> Response:
        return Response(json.dumps(answer), content_type="application/json")

    for path in ("/v1/chat/completions", "/v1/messages"):
        server.expect_request(path, "POST").respond_with_handler(respond)
    test = {"turns": [{"user": "Hello"}], "maxTurns": 1, "evaluations": [{"criterion": "It greets"}]}
    with world.agent() as agent:
        suite = write_suite(folder, test, judgeModel="m")
        url = server.url_for("")
        env = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "LLM_API_KEY": SECRET}
        env |= {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        chosen = (f"--provider={provider}", "--judge-check=off")
        done = ci_evals("run", suite, *chosen, *options, cwd=folder, env=env)
    (trial,) = read_results(folder)["suites"][0]["tests"][0]["trials"]
    assert trial["findings"], done.stdout + done.stderr
    return trial["findings"][0]


@pytest.mark.parametrize(("provider", "answer", "readable"), CASES)
def test_answers_are_read_where_they_are_unambiguous(tmp_path, httpserver, provider, answer, readable):
    """Whatever is around them; others leave the criterion undecided."""
    finding = finding_of(tmp_path, httpserver, provider, answer)
    expected = ("passed", None) if readable else ("undecided", "judge_error")
    assert (finding["outcome"], finding["cause"]) == expected, finding["reason"]
    assert finding["unusable"] is None


UNUSABLE = {
    "words": (completion(f"It passes, {SECRET}."), "It passes, ***."),
    "a void answer": (completion(fakes.judge_answer("pass", "So.", (1, "no such words"))), "no such words"),
    "cut off": (
        {"choices": [{"message": {"content": '{"reasoning": "It'}, "finish_reason": "length"}]},
        '"reasoning',
    ),
    "very long": (completion("It passes. " * 2000), "(22,000 characters)"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_debug_keeps_what_a_judge_wrote(tmp_path, httpserver, case):
    """Both answers, shortened and without secrets, in results, page and the test's report."""
    answer, words = UNUSABLE[case]
    finding = finding_of(tmp_path, httpserver, "openai", answer, "--debug")
    assert (finding["outcome"], len(finding["unusable"])) == ("undecided", 2)
    assert all(words in text and len(text) < 5_000 for text in finding["unusable"])
    reports = [
        path.read_text() for path in (tmp_path / "results").rglob("*") if path.suffix in {".md", ".html"}
    ]
    assert any("Unusable answer of the judge" in text for text in reports)
    assert not any(SECRET in text for text in reports)


@pytest.mark.parametrize("votes", [3])
def test_debug_keeps_them_with_each_vote(tmp_path, httpserver, votes):
    """Where several were asked for."""
    finding = finding_of(
        tmp_path, httpserver, "openai", completion("Hm."), "--debug", f"--judge-votes={votes}"
    )
    assert [vote["unusable"] for vote in finding["votes"]] == [["Hm.", "Hm."]] * len(finding["votes"])
