"""A stand-in for the program `copilot`, which prints what the real one was seen to print (1.0.102).

    copilot_program.install(folder, 'return "Hello"')
    CopilotLLM("gpt-5.4", claude_program.environ(folder))

It is strict: it ends at an option that it does not know, and where tools or files could be reached.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "GitHub Copilot CLI 1.0.102."

_PROGRAM = """#!{python} -I
import os, sys, time
sys.path.insert(0, {tests!r})
from copilot_program import fail, play, say

def reply(asked):
{reply}

play(reply, {version!r})
"""
_FLAGS = (
    "--no-custom-instructions", "--disable-builtin-mcps", "--no-ask-user", "--no-auto-update", "--no-remote",
    "--no-color", "--disable-client-telemetry",
)  # fmt: skip


def install(folder: Path, reply: str = 'return "Hello"', version: str = VERSION) -> Path:
    """Put a program `copilot` into `folder`; `reply` is the body of a function of what it is `asked`."""
    folder.mkdir(parents=True, exist_ok=True)
    body = "\n".join(f"    {line}" for line in reply.strip().splitlines())
    path = folder / "copilot"
    tests = str(Path(__file__).parent)
    path.write_text(_PROGRAM.format(python=sys.executable, tests=tests, reply=body, version=version))
    path.chmod(0o755)
    return path


def play(reply: Callable[[dict[str, Any]], str], version: str) -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"{version}\nRun 'copilot update' to check for updates.\n")
        return
    given = _options().parse_args()
    if given.available_tools != "none" or any(Path.cwd().iterdir()):
        sys.exit("tools are allowed, or there is something to work on")
    text = sys.stdin.read()
    asked = {
        "model": given.model, "text": text, "argv": sys.argv[1:], "env": dict(os.environ),
        "cwd": str(Path.cwd()),
    }  # fmt: skip
    with (Path(sys.argv[0]).parent / "asked").open("a") as log:
        log.write(json.dumps(asked) + "\n")
    say("session.info", infoType="configuration", message='Unknown tool name in the tool allowlist: "none"')
    say("user.message", content=text)
    answer = reply(asked)
    say("assistant.message", model=given.model, content=answer, toolRequests=[])
    usage = {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 0, "cacheWriteTokens": 0}
    given.usage_output_file.write_text(json.dumps({"modelMetrics": {given.model: {"usage": usage}}}))
    _end(0)


def say(kind: str, **data: Any) -> None:
    """An event on standard output."""
    sys.stdout.write(json.dumps({"type": kind, "data": data, "id": "1"}) + "\n")
    sys.stdout.flush()


def fail(kind: str, message: str, status: int | None = None) -> None:
    """Tell of an error and end, as after the last retry."""
    say(
        "session.error", errorType=kind, message=message, **({} if status is None else {"statusCode": status})
    )
    _end(1)


def _end(code: int) -> None:
    sys.stdout.write(json.dumps({"type": "result", "exitCode": code, "usage": {"premiumRequests": 1}}) + "\n")
    sys.stdout.flush()
    sys.exit(code)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in _FLAGS:
        parser.add_argument(flag, action="store_true", required=True)
    parser.add_argument("--output-format", choices=["json"], required=True)
    parser.add_argument("--stream", choices=["off"], required=True)
    for option in ("--model", "--available-tools", "--log-dir"):
        parser.add_argument(option, required=True)
    parser.add_argument("--usage-output-file", type=Path, required=True)
    return parser
