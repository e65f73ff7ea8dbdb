"""Models that are deployed at Azure OpenAI, and providers that are opened by a bearer token."""

import json
import os

import pytest
import world
from pytest_httpserver import HTTPServer
from werkzeug import Response

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import AzureOpenAILLM, OpenAILLM
from ci_evals.domain.errors import LLMAccessError, LLMError, UsageError
from ci_evals.ports import Completion, Prompt

PLAIN = Prompt(system="You are a customer.", text="What do you say?")
JUDGING = Prompt(system="You judge.", text="Was it good?", schema={"type": "object"})
ANSWER = {
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}],
    "usage": {"prompt_tokens": 21, "completion_tokens": 5},
}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_VERSION", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def resource(monkeypatch):
    """A resource at Azure whose deployment `judge` answers; the variables name it."""
    with HTTPServer() as server:
        server.asked = []

        def answer(request):
            server.asked.append(request)
            key, bearer = request.headers.get("api-key"), request.headers.get("Authorization")
            if "azure-key-1" not in (key, (bearer or "").removeprefix("Bearer ")):
                return world.fault(401, "Access denied due to invalid subscription key").response()
            if request.path != "/openai/deployments/judge/chat/completions":
                detail = {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}
                return Response(json.dumps({"error": detail}), 404)
            return Response(json.dumps(ANSWER), content_type="application/json")

        for path in ("deployments/judge", "deployments/my judge", "v1"):
            server.expect_request(f"/openai/{path}/chat/completions").respond_with_handler(answer)
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url_for("").rstrip("/"))
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
        yield server


async def ask(llm, prompt=PLAIN):
    try:
        return await llm.complete(prompt)
    finally:
        await llm.aclose()


async def test_azure_request_names_deployment_version_and_key_or_entra_token(resource):
    llm = AzureOpenAILLM("judge", "azure-key-1", environ=os.environ)
    assert await ask(llm, JUDGING) == Completion("{}", input_tokens=21, output_tokens=5)
    (asked,) = resource.asked
    assert asked.path == "/openai/deployments/judge/chat/completions"
    assert asked.args.to_dict() == {"api-version": "2024-10-21"}
    assert asked.headers["api-key"] == "azure-key-1"
    assert "Authorization" not in asked.headers
    assert asked.get_json()["response_format"]["type"] == "json_schema"
    resource.asked.clear()
    await ask(AzureOpenAILLM("judge", None, token="azure-key-1", environ=os.environ))
    await ask(AzureOpenAILLM("judge", "azure-key-1", token="other", environ=os.environ))
    by_token, by_key = resource.asked
    assert by_token.headers["Authorization"] == "Bearer azure-key-1"
    assert "api-key" not in by_token.headers
    assert "Authorization" not in by_key.headers


async def test_azure_errors_name_azure_variables_and_missing_deployments(resource):
    """A deployment that is not there is asked for once."""
    by_key = r"refused the key.*LLM_API_KEY or AZURE_OPENAI_API_KEY to a valid"
    with pytest.raises(LLMAccessError, match=by_key):
        await ask(AzureOpenAILLM("judge", "wrong-key-1", environ=os.environ))
    with pytest.raises(LLMAccessError, match="set AZURE_OPENAI_AD_TOKEN to a valid token"):
        await ask(AzureOpenAILLM("judge", None, token="wrong-key-1", environ=os.environ))
    resource.asked.clear()
    with pytest.raises(LLMError, match=r"Azure OpenAI at .* 404: .*: The API deployment does not exist"):
        await ask(AzureOpenAILLM("my judge", "azure-key-1", environ=os.environ), JUDGING)
    assert len(resource.asked) == 1


async def test_azure_v1_api_is_called_like_openai(resource, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", resource.url_for("/openai/v1/"))
    with pytest.raises(LLMError, match="404"):
        await ask(OpenAILLM("judge", "azure-key-1", environ=os.environ))
    (asked,) = resource.asked
    assert (asked.path, asked.args.to_dict()) == ("/openai/v1/chat/completions", {})
    assert asked.headers["Authorization"] == "Bearer azure-key-1"


def test_azure_endpoint_selects_azure_unless_a_base_url_is_set():
    endpoint = {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}
    for environ in (endpoint, endpoint | {"OPENAI_BASE_URL": ""}):
        assert OpenAILLM.for_environment(environ) is AzureOpenAILLM
    for environ in (endpoint | {"OPENAI_BASE_URL": "http://y"}, {"AZURE_OPENAI_ENDPOINT": ""}, {}):
        assert OpenAILLM.for_environment(environ) is not AzureOpenAILLM


def test_azure_without_version_or_key_or_with_a_path_in_its_endpoint_is_rejected(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/openai/v1/")
    with pytest.raises(UsageError, match=r"OPENAI_API_VERSION is not: .* OPENAI_BASE_URL"):
        AzureOpenAILLM("judge", "key-123456", environ=os.environ)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    with pytest.raises(UsageError, match=r"ends before '/openai', and not 'https://x.*OPENAI_BASE_URL to it"):
        AzureOpenAILLM("judge", "key-123456", environ=os.environ)
    with pytest.raises(UsageError, match="there is no key for Azure OpenAI"):
        AzureOpenAILLM("judge", None, "https://x.openai.azure.com/openai", environ=os.environ)


async def test_anthropic_bearer_token_is_sent_unless_there_is_a_key():
    """Gateways want it so."""
    with world.llm(lambda asked: "Hello") as models:
        for key, token in ((None, models.key), (models.key, "other")):
            assert (await ask(AnthropicLLM("m", key, models.url, token=token))).text == "Hello"
        with pytest.raises(LLMAccessError, match="set ANTHROPIC_AUTH_TOKEN to a valid token"):
            await ask(AnthropicLLM("m", None, models.url, token="wrong-key-1"))
    by_token, by_key, _ = models.asked
    assert by_token.headers["Authorization"] == f"Bearer {models.key}"
    assert "other" not in str(by_key.headers)


def test_empty_base_url_variable_means_the_provider_itself(monkeypatch):
    """A workflow sets it so if a secret or variable is not there."""
    for kind in (OpenAILLM, AnthropicLLM):
        monkeypatch.setenv(kind.vendor.address, "")
        assert f"at api.{kind.vendor.module}.com" in kind("m", "key-123456", environ=os.environ).who
