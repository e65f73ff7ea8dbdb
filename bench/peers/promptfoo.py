"""Measures promptfoo beside the bare calls and ci-evals, at the workload of this bench.

    python -m bench.peers.promptfoo /tmp/promptfoo

FOLDER gets the newest promptfoo from npm, its database and its results. `node` and `npm` must be there, in a
version that promptfoo supports. It plays a test for each test, `--repeat` for loops, by a provider of our
own (`promptfoo_conversation.mjs`) that holds the conversation, and an `llm-rubric` for each judged criterion
by its own OpenAI provider. The simulated user that it brings cannot play, since that asks promptfoo's servers
for its lines. So the provider asks for them too, by `fetch`, which is the cheapest way there is.

As many tests play at a time as asked for. Its cache, telemetry, search for updates and remote generation are
off. All else is as it comes: the database that it keeps, and a file of results in JSON.

Measured are wall time, processor time and peak memory of the whole process; what one conversation more costs
leaves start-up out. Not measured are the two strict criteria, which are left out there; and faults.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.peers.beside import Peer, Play, main

_PROVIDER = Path(__file__).with_name("promptfoo_conversation.mjs")
_VERDICT = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "reason": {"type": "string"},
                "pass": {"type": "boolean"},
                "score": {"type": "number"},
            },
            "required": ["reason", "pass", "score"],
            "additionalProperties": False,
        },
    },
}


def install(folder: Path) -> str:
    """A folder of packages with promptfoo."""
    if not _package(folder).exists():
        command = [
            _program("npm"),
            "install",
            "--prefix",
            str(folder),
            "--no-audit",
            "--no-fund",
            "promptfoo",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603
    version: str = json.loads((_package(folder) / "package.json").read_text())["version"]
    return version


def command(play: Play) -> tuple[Sequence[str], Mapping[str, str]]:
    """`promptfoo eval`, by its program and not by npx, which would be measured too."""
    file = play.folder / "promptfooconfig.json"
    file.write_text(json.dumps(_config(play)))
    entry = _package(play.folder) / "dist" / "src" / "entrypoint.js"
    program = [_program("node"), str(entry), "eval", "--config", str(file)]
    options = ["--no-cache", "--max-concurrency", str(play.parallel), "--repeat", str(play.loops)]
    options += [
        "--output",
        str(play.folder / "results.json"),
        "--no-table",
        "--no-progress-bar",
        "--no-share",
    ]
    env = os.environ | {
        "PROMPTFOO_CONFIG_DIR": str(play.folder / "home"),
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
    return [*program, *options], env


def _config(play: Play) -> dict[str, Any]:
    tests = json.loads(play.suite.read_text())["tests"]
    judge = {"apiBaseUrl": f"{play.url}/v1", "apiKey": "bench-llm-key", "response_format": _VERDICT}
    return {
        "prompts": ["{{guidelines}}\n{{userInfo | dump}}"],
        "providers": [{"id": f"file://{_PROVIDER}", "config": {"url": play.url}}],
        "defaultTest": {"options": {"provider": {"id": "openai:chat:bench", "config": judge}}},
        "tests": [
            {
                "description": test["name"],
                "vars": {
                    "guidelines": test["guidelines"],
                    "userInfo": test["userInfo"],
                    "first": test["turns"][0]["user"],
                },
                "assert": [
                    {"type": "llm-rubric", "value": one["criterion"]}
                    for one in test["evaluations"]
                    if "strict" not in one
                ],
            }
            for test in tests
        ],
    }


def _package(folder: Path) -> Path:
    return folder / "node_modules" / "promptfoo"


def _program(name: str) -> str:
    if found := shutil.which(name):
        return found
    sys.exit(f"error: promptfoo needs {name!r}, which is not on the PATH")


if __name__ == "__main__":
    main(Peer("promptfoo", install, command), __doc__ or "")
