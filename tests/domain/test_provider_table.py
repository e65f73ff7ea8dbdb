"""The table of providers: what follows from a row."""

from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.cli.environment_secrets import secret_variables
from ci_evals.domain.providers import SECRETS
from ci_evals.extension_registry import judging_providers, providers
from ci_evals.extensions.model_programs.program_llm import ProgramLLM
from ci_evals.wiring.providers import keyless_of, sdk_of

AZURE = {"AZURE_OPENAI_ENDPOINT": "https://name.openai.azure.com"}


def test_providers_are_listed_in_order_and_name_the_class_of_their_models() -> None:
    assert [*providers()] == ["openai", "anthropic", "claude-code", "copilot", "offline"]
    assert judging_providers() == ["openai", "anthropic", "claude-code", "copilot"]
    assert all(row.name == name for name, row in providers().items())
    for name in judging_providers():
        if providers()[name].needs_key:
            assert issubclass(sdk_of(name, {}), SdkLLM)
        else:
            assert issubclass(keyless_of(name), ProgramLLM)


def test_secret_variables_of_all_providers_are_redacted() -> None:
    """Those that an SDK reads, and those of extensions; tokens that every job has are among them."""
    for row in providers().values():
        assert set(row.job_tokens) <= set(row.secrets) <= SECRETS <= secret_variables()
        for environ in ({}, AZURE) if row.needs_key else ():
            vendor = sdk_of(row.name, environ).vendor
            assert {vendor.key, vendor.bearer} - {None} <= set(row.secrets), row.name
