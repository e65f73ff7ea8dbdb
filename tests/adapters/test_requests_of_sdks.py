"""Our requests to providers are those of their own SDKs."""

from importlib import import_module

import httpx2
import pytest
from endpoints import KEY, serving

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import AzureOpenAILLM, OpenAILLM

CUSTOM = "X-Gateway-Token: gateway-7\n  x-team :evals \nno header\naccept: text/json"
SDKS = {
    OpenAILLM: ("openai", "AsyncOpenAI", "api_key", "/v1"),
    AnthropicLLM: ("anthropic", "AsyncAnthropic", "auth_token", ""),
    AzureOpenAILLM: ("openai", "AsyncAzureOpenAI", "azure_ad_token", ""),
}
OWN = ("x-stainless-", "user-agent", "accept-encoding", "connection", "host", "content-length")
"""Headers in which clients may differ."""

ORGANIZATION = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-2"}
CASES = [
    (OpenAILLM, False, {}),
    (OpenAILLM, False, ORGANIZATION),
    (OpenAILLM, False, {"OPENAI_CUSTOM_HEADERS": CUSTOM}),
    (OpenAILLM, False, {"OPENAI_CUSTOM_HEADERS": f"authorization: Basic {KEY}"}),
    (AnthropicLLM, False, {}),
    (AnthropicLLM, True, {"ANTHROPIC_CUSTOM_HEADERS": CUSTOM}),
    (AnthropicLLM, False, {"ANTHROPIC_CUSTOM_HEADERS": "Anthropic-Version: 2023-01-01"}),
    (AzureOpenAILLM, False, ORGANIZATION),
    (AzureOpenAILLM, True, {"OPENAI_CUSTOM_HEADERS": CUSTOM}),
]


@pytest.mark.parametrize(("kind", "by_token", "variables"), CASES)
async def test_a_request_is_that_of_the_sdk(monkeypatch, kind, by_token, variables):
    """The same address, headers and body, for a question and for the list of models."""
    module, client, token, path = SDKS[kind]
    with serving(lambda _: {"data": []}) as server:
        variables = variables | {kind.vendor.address: server.url + path, "OPENAI_API_VERSION": "2024-10-21"}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        credential = {"token": KEY} if by_token else {}
        llm = kind("a model/1", None if by_token else KEY, environ=variables, **credential)
        sdk = getattr(import_module(module), client)(**{token if by_token else "api_key": KEY}, max_retries=0)
        body = {"model": llm.model, "messages": [{"role": "user", "content": "Grüße"}], "n": 0.5}
        await llm.post(llm.vendor.path, body)
        await llm.check()
        await sdk.post(llm.vendor.path, cast_to=httpx2.Response, body=body)
        await sdk.get(llm.vendor.models_path, cast_to=httpx2.Response)
        await llm.aclose()
        await sdk.close()
    asked = [_essence(request) for request in server.asked]
    assert asked[:2] == asked[2:]


def _essence(asked):
    headers = {name: value for name, value in asked.headers.items() if not name.startswith(OWN)}
    if asked.body is None:
        headers.pop("content-type", None)
    return asked.method, asked.path, asked.query, headers, asked.body
