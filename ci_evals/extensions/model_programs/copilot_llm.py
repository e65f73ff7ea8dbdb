"""`copilot`: a model behind the program `copilot` (GitHub Copilot CLI), by that program's login or a token.

The program is an agent and is restricted as far as it can be: no tools, an empty folder, no instructions of
its user. It keeps a system prompt of its own, and has no form for answers in JSON: the prompt asks for it.
Seen with 1.0.102: `copilot --help`, `copilot help environment`, and what it prints with --output-format=json.
"""

import json
import re
from pathlib import Path

from ci_evals.adapters.models.answer_formats import with_schema
from ci_evals.adapters.models.sdk_llm import tokens
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAnswerError, Paid
from ci_evals.extensions.model_programs.program_llm import Events, Program, ProgramLLM
from ci_evals.ports import Completion, Prompt
from ci_evals.support import payload
from ci_evals.support.text import whole

MIN_VERSION = (1, 0, 102)
"""The version whose options and output were seen."""

_OPTIONS = (
    "--output-format=json",
    "--stream=off",
    "--available-tools=none",  # no tool has that name; with an empty list it offers all
    "--no-custom-instructions",
    "--disable-builtin-mcps",
    "--no-ask-user",
    "--no-auto-update",
    "--no-remote",
    "--no-color",
    "--disable-client-telemetry",
)
_TOKENS = ("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL")
"""Variables with which the program needs nothing of its user's folder."""
_USED_UP = re.compile(r"quota|usage limit|premium request", re.IGNORECASE)
_USAGE = "usage.json"


class CopilotLLM(ProgramLLM):
    """A model behind the program `copilot`."""

    program = Program(
        name="copilot",
        provider="copilot",
        product="GitHub Copilot CLI",
        vendor="Copilot",
        min_version=MIN_VERSION,
        setup="npm install --global @github/copilot",
        login="copilot login, or COPILOT_GITHUB_TOKEN in the environment",
        services=("COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_GH_HOST", "GH_HOST"),
    )
    no_access = re.compile(
        r"no authentication information|authentication failed|not authenticated|failed to load models"
        r"|unauthorized|/login\b|not authorized|forbidden",
        re.IGNORECASE,
    )

    def _environment(self, environ: dict[str, str]) -> dict[str, str]:
        # A step's own token belongs to the job: Copilot gets one only if it is named for it.
        return environ | {"COPILOT_AUTO_UPDATE": "false", "COPILOT_ALLOW_ALL": "false"}

    def _own_folders(self, folder: Path) -> dict[str, str]:
        # It keeps every conversation. Its user's folder is needed only if the login lies there.
        return {"COPILOT_HOME": str(folder)} if any(self._environ.get(name) for name in _TOKENS) else {}

    def _arguments(self, prompt: Prompt, folder: Path) -> list[str]:  # noqa: ARG002  # the input has it
        arguments = [*_OPTIONS, f"--model={self.model}", f"--usage-output-file={folder / _USAGE}"]
        return [*arguments, f"--log-dir={folder}"]

    def _input(self, prompt: Prompt) -> bytes:
        return whole("\n\n".join(filter(None, (prompt.system, with_schema(prompt).text)))).encode()

    def _read(self, events: Events, folder: Path) -> Completion:
        paid = _paid(folder / _USAGE)
        if error := payload.member(events.get("session.error"), "data"):
            kind, status = payload.member(error, "errorType"), payload.member(error, "statusCode")
            reason = payload.explain(error) or f"{kind}, status {status}"
            no_access = kind == "authentication" or status in (401, 403)
            used_up = kind == "quota" or _USED_UP.search(reason) is not None
            raise self._failure(reason, status, no_access=no_access, used_up=used_up)
        message = payload.member(events.get("assistant.message"), "data")
        text = payload.member(message, "content")
        if payload.member(message, "toolRequests"):
            raise LLMAnswerError(f"{self.who} called a tool instead of answering", paid)
        if not isinstance(text, str) or not text.strip():
            raise LLMAnswerError(f"{self.who} gave an empty answer", paid)
        return Completion.of(text, paid)


def _paid(file: Path) -> Paid:
    """Return the tokens of all models that the program called, by the file that it leaves.

    Copilot bills requests, so its price is unknown.
    """
    try:
        models = payload.member(json.loads(file.read_bytes()), "modelMetrics")
    except (OSError, ValueError, RecursionError):
        models = None
    each = models.values() if isinstance(models, dict) else ()
    usage = [payload.member(model, "usage") for model in each]
    read = [token_count(payload.member(model, "inputTokens")) for model in usage]
    written = [tokens(model, "outputTokens") for model in usage]
    return Paid(_sum(read), _sum(written))


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
