"""Judges and agents of one family, as far as names tell."""

import pytest
from commands import ci_evals, write_suite
from each_row import each_row

from ci_evals.domain.suite import Suite
from ci_evals.planning.model_family import agents_model, family, warnings

TEST = {"name": "t", "guidelines": "g", "turns": [{"user": "Hi"}], "evaluations": [{"criterion": "Polite"}]}


@each_row(("model", "expected"), [
    *((name, "GPT") for name in ("gpt-6.1-terra", "openai/gpt-4o", "GPT-5", "o3", "azure/o4-mini")),
    *((name, "GPT") for name in ("chatgpt-4o-latest", "gpt-oss:120b", "ft:gpt-4o-mini:acme", "gpt4")),
    *((name, "Claude") for name in ("claude-opus-5-5", "us.anthropic.claude-sonnet-4-v1:0", "haiku")),
    *((name, "Claude") for name in ("sonnet", "opus[1m]", "anthropic/claude-3.5-sonnet")),
    *((name, "Gemini") for name in ("gemini-3.8-flash", "models/gemini-3-pro", "google/gemma-3-27b")),
    *((name, "Llama") for name in ("meta-llama/Llama-4-Scout", "accounts/x/llama-v3p1", "codellama")),
    *((name, "Mistral") for name in ("mistral-large", "open-mixtral-8x22b", "ministral-8b", "codestral")),
    *((name, "Qwen") for name in ("qwen3-max", "Qwen/QwQ-32B")),
    *((name, "DeepSeek") for name in ("deepseek-chat", "deepseek-r1-distill-llama-70b")),
    *((name, "Grok") for name in ("grok-4", "x-ai/grok-code-fast")),
    *((name, "Command") for name in ("command-r-plus", "cohere/command-a-03-2025")),
    *((name, None) for name in ("our-support-bot", "", "groq", "opus-mt-en-de", "video1")),
    *((name, None) for name in ("command-line", "foo3", "egpts", "router/auto")),
])  # fmt: skip
def test_model_family_is_recognized_by_name(model, expected):
    assert family(model) == expected


def test_one_warning_lists_judge_and_agent_pairs_of_same_family():
    pairs = [("gpt-6", "gpt-5"), ("sonnet", "gpt-5"), ("gpt-6", "gpt-5"), ("o3", "openai/gpt-4o")]
    (warning,) = warnings(pairs)
    assert "the same model family: gpt-6 judges gpt-5 (GPT), o3 judges openai/gpt-4o (GPT); models" in warning
    assert "judge-model" in warning
    (many,) = warnings([("gpt-6", f"gpt-{number}") for number in range(9)])
    assert "gpt-6 judges gpt-2 (GPT), and 6 more; models" in many
    others = [("gpt-6", "claude-opus-5-5"), ("gpt-6", "our-bot"), ("judge", "gpt-5")]
    for judge, agent in (*others, ("my-deployment", "my-deployment")):
        assert warnings([(judge, agent)]) == ()


@each_row(("fields", "expected"), [
    ({"adapter": "aui", "model": "gpt-5"}, "gpt-5"),
    ({"adapter": "aui"}, None),
    ({"adapter": "openai", "agentId": "gpt-5"}, "gpt-5"),
    ({"adapter": "openai", "agentId": "bot", "model": "gpt-5"}, "gpt-5"),
    ({"adapter": "demo", "model": "gpt-5"}, None),
    ({"adapter": "command: ./agent", "model": "gpt-5"}, "gpt-5"),
])  # fmt: skip
def test_agent_model_is_read_from_the_suite(fields, expected):
    assert agents_model(Suite.model_validate({"name": "s", "tests": [TEST], **fields})) == expected


@pytest.mark.slow
def test_plan_command_warns_of_one_family_only_if_something_is_judged(tmp_path):
    agent = {"adapter": "openai", "model": "gpt-6-sol", "baseUrl": "http://127.0.0.1:9/v1"}
    judged = {"evaluations": [{"criterion": "Polite"}]}
    suite = write_suite(tmp_path, judged, **agent)
    strict = write_suite(tmp_path, name="strict.json", **agent)
    stderr = ci_evals("plan", suite, cwd=tmp_path, env={"AGENT_KEY": "key-123456"}).stderr
    warning = "warning: judge and agent are from the same model family: gpt-6.1-terra judges gpt-6-sol"
    assert stderr.startswith(warning)
    for arguments in ([suite, "--provider=anthropic"], [suite, "--provider=offline"], [strict]):
        other = ci_evals("plan", *arguments, cwd=tmp_path, env={"AGENT_KEY": "key-123456"})
        assert (other.returncode, "family" in other.stderr) == (0, False)
