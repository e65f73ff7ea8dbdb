"""A stand-in for the program `claude`, which keeps its documented contract in headless mode.

    claude_program.install(folder, 'return "{}" if asked["schema"] else "Hello"')
    ClaudeCodeLLM("sonnet", claude_program.environ(folder))

Its options and results are those of https://code.claude.com/docs/en/cli-reference and /headless, its errors
those of /errors. It is strict: it ends at an option that it does not know, and at a message that the real one
would look into for files to read.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "2.1.296 (Claude Code)"
NEEDED = ("-p", "--verbose", "--no-session-persistence", "--safe-mode", "--strict-mcp-config")

_PROGRAM = """#!{python} -I
import os, subprocess, sys, time
sys.path.insert(0, {tests!r})
from claude_program import error_result, play, result, say

def reply(asked):
{reply}

play(reply, {version!r})
"""


def install(folder: Path, reply: str = 'return "Hello"', version: str = VERSION) -> Path:
    """Puts a program `claude` into `folder`; `reply` is the body of a function of what it is `asked`.

    It returns a text (JSON if there is an `asked["schema"]`), or calls `result`, `error_result` or `say`, and
    exits.
    """
    folder.mkdir(parents=True, exist_ok=True)
    body = "\n".join(f"    {line}" for line in reply.strip().splitlines())
    tests = str(Path(__file__).parent)
    path = folder / "claude"
    path.write_text(_PROGRAM.format(python=sys.executable, tests=tests, reply=body, version=version))
    path.chmod(0o755)
    return path


def environ(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which that program is the one that is found."""
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **more}


def read_requests(folder: Path) -> list[dict[str, Any]]:
    """What the program was asked, in the order in which it was."""
    log = folder / "asked"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def count_version_requests(folder: Path) -> int:
    """How often the program was asked for its version."""
    log = folder / "versions"
    return len(log.read_text().splitlines()) if log.exists() else 0


def play(reply: Callable[[dict[str, Any]], str], version: str) -> None:
    home = Path(sys.argv[0]).parent
    if sys.argv[1:] == ["--version"]:
        _note(home / "versions", version)
        sys.stdout.write(f"{version}\n")
        return
    asked = _asked()
    _note(home / "asked", asked)
    say(type="system", subtype="init", model=asked["model"], tools=[], mcp_servers=[])
    answer = reply(asked)
    if asked["schema"] is None:
        result(answer)
    else:
        result("Done.", structured_output=json.loads(answer), num_turns=2)


def say(**event: Any) -> None:
    """An event on standard output."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def result(text: str | None, **changes: Any) -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 8, "cache_read_input_tokens": 10}
    event = {"subtype": "success", "is_error": False, "api_error_status": None, "result": text}
    event |= {"num_turns": 1, "usage": usage | {"output_tokens": 5}, "total_cost_usd": 0.25}
    say(type="result", **event | changes)


def error_result(text: str, status: int | None = None) -> None:
    """An error of the API or the login, told as the result."""
    result(text, is_error=True, api_error_status=status, usage={}, total_cost_usd=0)
    sys.exit(1)


def _asked() -> dict[str, Any]:
    given = _options().parse_args()
    if given.tools or any(Path.cwd().iterdir()):
        sys.exit("tools are allowed, or there is something to work on")
    (line,) = sys.stdin.read().splitlines()  # all of it: the input is ended
    message = json.loads(line)
    if message["type"] != "user" or message["client_composed"] is not True:
        sys.exit("a message that may have files read and commands obeyed")
    file = given.system_prompt_file
    return {
        "model": given.model, "system": file.read_text("utf-8") if file else given.system_prompt,
        "text": message["message"]["content"], "schema": given.json_schema, "turns": given.max_turns,
        "argv": sys.argv[1:], "env": dict(os.environ), "cwd": str(Path.cwd()),
    }  # fmt: skip


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in (*NEEDED, "--disable-slash-commands"):
        parser.add_argument(flag, action="store_true", required=True)
    for option in ("--input-format", "--output-format"):
        parser.add_argument(option, choices=["stream-json"], required=True)
    for option in ("--model", "--tools"):
        parser.add_argument(option, required=True)
    parser.add_argument("--max-turns", type=int, required=True)
    prompts = parser.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--system-prompt-file", type=Path)
    prompts.add_argument("--system-prompt")
    parser.add_argument("--json-schema", type=json.loads)
    return parser


def _note(file: Path, value: Any) -> None:
    with file.open("a") as log:
        log.write(json.dumps(value) + "\n")
