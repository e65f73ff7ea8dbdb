"""Answers of judges in the formats of real models and servers, on the command line."""

import json
import re

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
    message = {"role": "assistant", "content": content, **fields}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def message_of(*content):
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
    "alone": (message_of({"type": "text", "text": GOOD}), True),
    "among words": (message_of({"type": "text", "text": f"So: {GOOD}"}), True),
    "as a thought": (message_of({"type": "thinking", "thinking": GOOD}), True),
    "words as a thought": (message_of({"type": "thinking", "thinking": "Hm."}), False),
}
CUT_OFF = {"message": {"content": '{"reasoning": "It'}, "finish_reason": "length"}


def findings_of(folder, server: HTTPServer, provider, answers, *options):

    def respond(request: Request) -> Response:
        (index,) = set(re.findall(r"It greets \[(\d+)\]", request.get_data(as_text=True)))
        return Response(json.dumps(answers[int(index)]), content_type="application/json")

    server.clear()
    for path in ("/v1/chat/completions", "/v1/messages"):
        server.expect_request(path, "POST").respond_with_handler(respond)
    checks = [{"criterion": f"It greets [{index}]"} for index in range(len(answers))]
    tests = [{"name": check["criterion"], "evaluations": [check]} for check in checks]
    with world.agent() as agent:
        suite = write_suite(folder, *tests, judgeModel="m")
        url = server.url_for("")
        env = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "LLM_API_KEY": SECRET}
        env |= {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        chosen = (f"--provider={provider}", "--judge-check=off")
        done = ci_evals("run", suite, *chosen, *options, cwd=folder, env=env)
    trials = [test["trials"][0] for test in read_results(folder)["suites"][0]["tests"]]
    assert all(trial["findings"] for trial in trials), done.stdout + done.stderr
    return [trial["findings"][0] for trial in trials]


@pytest.mark.parametrize(("provider", "cases"), [("openai", OPENAI), ("anthropic", ANTHROPIC)])
def test_judge_answer_is_read_despite_surrounding_text_or_undecided_if_ambiguous(
    tmp_path, httpserver, provider, cases
):
    findings = findings_of(tmp_path, httpserver, provider, [answer for answer, _ in cases.values()])
    for (name, (_, readable)), finding in zip(cases.items(), findings, strict=True):
        expected = ("passed", None, None) if readable else ("undecided", "judge_error", None)
        seen = (finding["outcome"], finding["cause"], finding["unusable"])
        assert seen == expected, (name, finding["reason"])


UNUSABLE_ANSWERS = {
    "words": (completion(f"It passes, {SECRET}."), "It passes, ***."),
    "a void answer": (completion(fakes.judge_answer("pass", "So.", (1, "no such words"))), "no such words"),
    "cut off": ({"choices": [CUT_OFF]}, '"reasoning'),
    "very long": (completion("It passes. " * 2000), "(22,000 characters)"),
}


def test_debug_keeps_unusable_answers_truncated_and_redacted(tmp_path, httpserver):
    answers = [answer for answer, _ in UNUSABLE_ANSWERS.values()]
    findings = findings_of(tmp_path, httpserver, "openai", answers, "--debug")
    for (name, (_, words)), finding in zip(UNUSABLE_ANSWERS.items(), findings, strict=True):
        assert (finding["outcome"], len(finding["unusable"])) == ("undecided", 2), name
        assert all(words in text and len(text) < 5_000 for text in finding["unusable"])
    files = (path for path in (tmp_path / "results").rglob("*") if path.suffix in {".md", ".html"})
    reports = [path.read_text() for path in files]
    assert any("Unusable answer of the judge" in text for text in reports)
    assert not any(SECRET in text for text in reports)
    options = ("--debug", "--judge-votes=3")
    (finding,) = findings_of(tmp_path, httpserver, "openai", [completion("Hm.")], *options)
    assert [vote["unusable"] for vote in finding["votes"]] == [["Hm.", "Hm."]] * len(finding["votes"])
