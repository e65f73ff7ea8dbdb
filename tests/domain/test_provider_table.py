"""The table of providers: what follows from a row."""

import pytest

from ci_evals.adapters.models.program_llm import ProgramLLM
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.cli.environment_secrets import SECRET_VARIABLES
from ci_evals.domain.providers import WITH_MODELS, Provider
from ci_evals.wiring.providers import models_of, sdk_of

AZURE = {"AZURE_OPENAI_ENDPOINT": "https://name.openai.azure.com"}


@pytest.mark.parametrize("provider", WITH_MODELS)
def test_a_row_names_the_class_of_its_models(provider: Provider) -> None:
    """By the name that its module has."""
    assert issubclass(models_of(provider), SdkLLM if provider.row.needs_key else ProgramLLM)


@pytest.mark.parametrize("provider", [provider for provider in WITH_MODELS if provider.row.needs_key])
@pytest.mark.parametrize("environ", [{}, AZURE])
def test_every_key_that_is_read_is_hidden(provider: Provider, environ: dict[str, str]) -> None:
    """The variables that an SDK's models read are among those of the row, which reports leave out."""
    vendor = sdk_of(provider, environ).vendor
    read = {vendor.key, vendor.bearer} - {None}
    assert read <= set(provider.row.secrets) <= set(SECRET_VARIABLES)


def test_a_provider_equals_its_name() -> None:
    """Files and options hold the name."""
    assert [*Provider] == ["openai", "anthropic", "claude-code", "copilot", "offline"]
    assert Provider("copilot") is Provider.COPILOT
    assert f"{Provider.OFFLINE}" == "offline"
