"""The providers whose models are programs."""

from ci_evals.domain.providers import Provider

_MODULES = "ci_evals.extensions.model_programs"

PROVIDERS = (
    Provider(
        "claude-code",
        f"{_MODULES}.claude_code_llm:ClaudeCodeLLM",
        judge="sonnet",
        user="haiku",
        secrets=("CLAUDE_CODE_OAUTH_TOKEN",),
        reports_cost=True,
    ),
    Provider(
        "copilot",
        f"{_MODULES}.copilot_llm:CopilotLLM",
        judge="gpt-5.4",
        user="gpt-5.4",
        secrets=("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
        job_tokens=("COPILOT_GITHUB_TOKEN",),
        bills_tokens=False,
    ),
)
