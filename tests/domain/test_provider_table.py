"""The table of providers: what follows from a row."""

import pytest

from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.cli.environment_secrets import secret_variables
from ci_evals.domain.providers import SECRETS, Provider
from ci_evals.extension_registry import judging_providers, providers
from ci_evals.extensions.model_programs.program_llm import ProgramLLM
from ci_evals.wiring.providers import keyless_of, sdk_of

AZURE = {"AZURE_OPENAI_ENDPOINT": "https://name.openai.azure.com"}
WITH_KEYS = [row for row in providers().values() if row.needs_key]


def test_choices_are_the_rows() -> None:
    """In the order in which options list them; `offline` has no models and cannot judge."""
    assert [*providers()] == ["openai", "anthropic", "claude-code", "copilot", "offline"]
    assert judging_providers() == ["openai", "anthropic", "claude-code", "copilot"]
    assert all(row.name == name for name, row in providers().items())


@pytest.mark.parametrize("name", judging_providers())
def test_a_row_names_the_class_of_its_models(name: str) -> None:
    """By the name that its module has."""
    if providers()[name].needs_key:
        assert issubclass(sdk_of(name, {}), SdkLLM)
    else:
        assert issubclass(keyless_of(name), ProgramLLM)


@pytest.mark.parametrize("row", WITH_KEYS, ids=lambda row: row.name)
@pytest.mark.parametrize("environ", [{}, AZURE])
def test_every_key_that_is_read_is_hidden(row: Provider, environ: dict[str, str]) -> None:
    """The variables that an SDK's models read are among those of the row, which reports leave out."""
    vendor = sdk_of(row.name, environ).vendor
    read = {vendor.key, vendor.bearer} - {None}
    assert read <= set(row.secrets) <= secret_variables()


@pytest.mark.parametrize("row", providers().values(), ids=lambda row: row.name)
def test_every_secret_of_a_provider_is_hidden(row: Provider) -> None:
    """Those of extensions too, in a list that needs none; tokens that every job has are among them."""
    assert set(row.job_tokens) <= set(row.secrets) <= SECRETS <= secret_variables()
