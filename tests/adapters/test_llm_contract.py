"""What every model promises, held to the fake and to the real ones alike."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import claude_program
import copilot_program
import pytest
import world
from fakes import ScriptedLLM

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import OpenAILLM
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError
from ci_evals.extensions.model_programs.claude_code_llm import ClaudeCodeLLM
from ci_evals.extensions.model_programs.copilot_llm import CopilotLLM
from ci_evals.ports import LLM, Prompt


@dataclass
class LLMCase:
    """A model that says the prompt back, or a verdict where a schema is given; others that are of no use."""

    llm: LLM
    mute: LLM
    failing: LLM
    locked: LLM


SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

CLAUDE = """
if asked["model"] == "failing":
    error_result("API Error: 500 Internal server error", 500)
if asked["model"] == "locked":
    error_result("Not logged in · Please run /login")
if asked["model"] == "mute":
    return ""
return "{}" if asked["schema"] else asked["system"] + ": " + asked["text"]
"""
COPILOT = """
if asked["model"] == "failing":
    fail("query", "Last error: 500 Internal server error", 500)
if asked["model"] == "locked":
    fail("authentication", "Authentication failed (HTTP 401).", 401)
if asked["model"] == "mute":
    return ""
return "{}" if "JSON Schema" in asked["text"] else asked["text"].replace(chr(10) * 2, ": ")
"""


PROGRAMS = {
    "claude-code": (claude_program, CLAUDE, ClaudeCodeLLM),
    "copilot": (copilot_program, COPILOT, CopilotLLM),
}


def say_back(asked: world.ModelRequest) -> str:
    if asked.model == "mute":
        return ""
    return "{}" if asked.wants_json else f"{asked.system}: {asked.text}"


@pytest.fixture(params=["scripted", "openai", "anthropic", "claude-code", "copilot"])
async def llm_case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LLMCase]:
    match request.param:
        case "scripted":
            yield LLMCase(
                ScriptedLLM(lambda prompt: "{}" if prompt.schema else f"{prompt.system}: {prompt.text}"),
                ScriptedLLM([LLMAnswerError("the model gave an empty answer")]),
                ScriptedLLM([LLMError("the model is not there")]),
                ScriptedLLM([LLMAccessError("the model's provider refused the key")]),
            )
        case "claude-code" | "copilot" as name:
            program, text, kind = PROGRAMS[name]
            program.install(tmp_path, text)
            environ = claude_program.environ(tmp_path)
            yield LLMCase(*(kind(model, environ) for model in ("m", "mute", "failing", "locked")))
        case _ as name:
            with world.llm(say_back) as models:
                kind = {"openai": OpenAILLM, "anthropic": AnthropicLLM}[name]
                url = models.openai_url if kind is OpenAILLM else models.url
                once = world.limiter(budget=world.NO_RETRIES)
                failing = kind("m", models.key, "http://127.0.0.1:1", limiter=once)
                llms = [*(kind(model, models.key, url) for model in ("m", "mute")), failing]
                llms.append(kind("m", "wrong", url))
                yield LLMCase(*llms)
                for llm in llms:
                    await llm.aclose()


async def test_completion_uses_system_and_text_and_reports_tokens_and_schema_json(llm_case):
    answer = await llm_case.llm.complete(Prompt("You are Ida", "Hello"))
    assert answer.text == "You are Ida: Hello"
    assert min(answer.input_tokens, answer.output_tokens) > 0
    assert llm_case.llm.model
    assert (await llm_case.llm.complete(Prompt("", "Judge", schema=SCHEMA))).text == "{}"


async def test_concurrent_answers_belong_to_their_questions(llm_case):
    prompts = [Prompt("s", str(number)) for number in range(12)]
    answers = await asyncio.gather(*(llm_case.llm.complete(prompt) for prompt in prompts))
    assert [answer.text for answer in answers] == [f"s: {number}" for number in range(12)]


async def test_failed_empty_and_refused_calls_raise_different_errors(llm_case):
    with pytest.raises(LLMError) as caught:
        await llm_case.failing.complete(Prompt("", "Hello"))
    assert not isinstance(caught.value, LLMAccessError | LLMAnswerError)
    with pytest.raises(LLMAnswerError):
        await llm_case.mute.complete(Prompt("", "Hello"))
    with pytest.raises(LLMAccessError):
        await llm_case.locked.complete(Prompt("", "Hello"))
