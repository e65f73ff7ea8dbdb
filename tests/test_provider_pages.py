"""What docs/providers.md says, held against the code, its settings, and the messages themselves."""

import re

import pytest
import yaml
from doc_pages import ROOT, blocks, code, table

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import AzureOpenAILLM, OpenAILLM
from ci_evals.cli.environment_secrets import secret_variables
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.extension_registry import providers
from ci_evals.extensions.model_programs import claude_code_llm, copilot_llm
from ci_evals.planning.model_family import family

PAGE = (ROOT / "docs/providers.md").read_text()
VENDORS = {"openai": OpenAILLM, "openai at Azure": AzureOpenAILLM, "anthropic": AnthropicLLM}


def test_providers_page_lists_every_provider_with_models():
    rows = {code(row[0]): (code(row[1]), code(row[2])) for row in table("`--provider`", PAGE)}
    models = {name: (row.judge, row.user) for name, row in providers().items()}
    assert rows == models | {"offline": ("nothing", "a script")}
    assert list(rows) == list(providers())


def test_providers_page_lists_every_key_variable():
    rows = {row[0].replace("`", ""): [code(cell) for cell in row[1:]] for row in table("provider", PAGE)}
    assert rows == {
        name: [kind.vendor.key, kind.vendor.bearer or "", kind.vendor.address]
        for name, kind in VENDORS.items()
    }
    assert {key for row in rows.values() for key in row[:2] if key} <= secret_variables()


@pytest.mark.parametrize("number", [0, 1])
def test_azure_examples_select_their_api(number):
    environ = {
        name: str(value) for name, value in yaml.safe_load(blocks("yaml", PAGE)[number])["env"].items()
    }
    assert (OpenAILLM.for_environment(environ) is AzureOpenAILLM) is bool(number)


def test_providers_page_names_existing_options_versions_and_families():
    named = set(re.findall(r"`?--([a-z][a-z-]+)", PAGE)) - {"safe-mode", "json-schema", "global"}
    assert named <= {name.replace("_", "-") for name in RunSettings.__dataclass_fields__}
    for minimum in (claude_code_llm.MIN_VERSION, copilot_llm.MIN_VERSION):
        assert f"version {'.'.join(map(str, minimum))} or later" in PAGE
    assert family("gpt-6-luna") == family("openai/o3")
    assert family("claude-opus-5-5") == family("sonnet")


def test_providers_page_quotes_messages_word_for_word():
    sources = " ".join(path.read_text() for path in (ROOT / "ci_evals").rglob("*.py"))
    reported = re.sub(r'"\s*\n?\s*f?"', "", sources).replace("{program.name!r}", "'claude'")
    reported = reported.replace("{self.program.vendor}", "Claude")
    for message, _ in table("message", PAGE):
        assert code(message) in reported, message
