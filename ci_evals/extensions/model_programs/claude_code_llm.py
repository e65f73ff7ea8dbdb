"""`claude-code`: Claude behind the program `claude`, with that program's login.

The program is an agent and is restricted to being a model: no tools, one turn, an empty folder, none of its
user's settings. Options and results: https://code.claude.com/docs/en/cli-reference and
https://code.claude.com/docs/en/headless; errors: https://code.claude.com/docs/en/errors.
"""

import json
import re
from pathlib import Path

from pydantic import JsonValue

from ci_evals.adapters.models.sdk_llm import tokens
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAnswerError, Paid
from ci_evals.extensions.model_programs.program_llm import Events, Program, ProgramLLM
from ci_evals.ports import Completion, Prompt
from ci_evals.support import payload
from ci_evals.support.text import whole

MIN_VERSION = (2, 1, 248)
"""The first version that obeys `client_composed`; earlier ones read files that a message names by `@path`.

`--safe-mode` exists since 2.1.169."""

_TURNS, _TURNS_WITH_SCHEMA = 1, 4
"""A structured answer is a tool call, which takes a turn, and another each time that it does not fit."""
_NO_MODEL_ANSWER = frozenset({"error_max_turns", "error_max_structured_output_retries"})

_USED_UP = re.compile(r"\bhit your\b.{0,40}\blimit|usage limit", re.IGNORECASE)
_INPUT_KINDS = ("", "cache_creation_", "cache_read_")
_MAX_DOLLARS = 1_000_000
"""Maximum plausible cost of one answer."""


class ClaudeCodeLLM(ProgramLLM):
    """A model behind the program `claude`."""

    program = Program(
        name="claude",
        provider="claude-code",
        product="Claude Code",
        vendor="Claude",
        min_version=MIN_VERSION,
        setup="https://code.claude.com/docs/en/setup",
        login="claude auth login",
        services=(
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_USE_BEDROCK",
            "ANTHROPIC_BEDROCK_BASE_URL",
            "CLAUDE_CODE_USE_VERTEX",
            "ANTHROPIC_VERTEX_BASE_URL",
            "CLAUDE_CODE_USE_FOUNDRY",
            "ANTHROPIC_FOUNDRY_BASE_URL",
            "ANTHROPIC_FOUNDRY_RESOURCE",
        ),
    )
    no_access = re.compile(
        r"not logged in|/login\b|invalid api key|oauth token|failed to authenticate|has been disabled"
        r"|disabled claude subscription|credit balance",
        re.IGNORECASE,
    )

    def _environment(self, environ: dict[str, str]) -> dict[str, str]:
        # With CLAUDECODE it would take itself for a part of the session that started us.
        environ.pop("CLAUDECODE", None)
        return environ | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def _arguments(self, prompt: Prompt, folder: Path) -> list[str]:
        arguments = ["-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose"]
        arguments += [f"--model={self.model}", "--tools", "", "--no-session-persistence"]
        # Not --bare, which knows no login, nor --setting-sources, which may hold what the login needs.
        arguments += ["--safe-mode", "--strict-mcp-config", "--disable-slash-commands"]
        if prompt.system:
            file = folder / "system.md"
            file.write_text(whole(prompt.system), encoding="utf-8", newline="")
            arguments += [f"--system-prompt-file={file}"]
        else:
            arguments += ["--system-prompt", ""]
        if prompt.schema is None:
            return [*arguments, f"--max-turns={_TURNS}"]
        return [*arguments, f"--max-turns={_TURNS_WITH_SCHEMA}", f"--json-schema={json.dumps(prompt.schema)}"]

    def _input(self, prompt: Prompt) -> bytes:
        message = {
            "type": "user",
            "message": {"role": "user", "content": whole(prompt.text)},
            "parent_tool_use_id": None,
            # Else "@/etc/passwd" in an agent's reply would have a file read, and "/clear" be obeyed.
            "client_composed": True,
        }
        return json.dumps(message).encode() + b"\n"

    def _final_refusal(self, event: dict[str, JsonValue]) -> str:
        # It asks for minutes with a key that was refused. The first time it may yet renew its login.
        attempt, retries = event.get("attempt"), event.get("subtype") == "api_retry"
        if retries and isinstance(attempt, int) and attempt > 1 and event.get("error_status") == 401:
            return f"{payload.name(event.get('error'))} (401)"
        return ""

    def _read(self, events: Events, folder: Path) -> Completion:  # noqa: ARG002  # it leaves no files
        result = events["result"]
        subtype, text = result.get("subtype"), result.get("result")
        if isinstance(subtype, str) and subtype in _NO_MODEL_ANSWER:
            raise LLMAnswerError(f"{self.who} gave no answer of the wanted form ({subtype})", _paid(result))
        if result.get("is_error") or subtype != "success":
            status = result.get("api_error_status")
            reason = payload.explain(text) or payload.explain(result.get("errors"))
            reason = reason or f"{subtype}, status {status}"
            no_access = status == 401 or self.no_access.search(reason) is not None
            used_up = _USED_UP.search(reason) is not None
            raise self._failure(reason, status, no_access=no_access, used_up=used_up)
        if (structured := result.get("structured_output")) is not None:
            text = json.dumps(structured, ensure_ascii=False)
        if not isinstance(text, str) or not text.strip():
            raise LLMAnswerError(f"{self.who} gave an empty answer", _paid(result))
        return Completion.of(text, _paid(result))


def _paid(result: dict[str, JsonValue]) -> Paid:
    usage = result.get("usage")
    kinds = [payload.member(usage, f"{kind}input_tokens") for kind in _INPUT_KINDS]
    counts = [token_count(count) for count in kinds if count is not None]
    read = None if None in counts else sum(count or 0 for count in counts) or None
    cost = result.get("total_cost_usd")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost <= _MAX_DOLLARS:
        cost = None
    return Paid(read, tokens(usage, "output_tokens"), cost)
