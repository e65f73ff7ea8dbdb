"""`ci-evals gate`, called in this process in the current folder."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

FILES = Path(__file__).parent / "files"


def run_gate(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """Gate files; return the exit code, and what is printed or the message of the usage error."""
    context = RunContext({"PATH": os.environ["PATH"]})
    with pytest.raises((SystemExit, UsageError)) as ended:
        invoke(["gate", *options], context)
    printed = "".join(capsys.readouterr())
    if isinstance(ended.value, UsageError):
        return 2, context.spell(str(ended.value))
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed


def saved_results(folder: str = "results") -> dict[str, Any]:
    return json.loads(Path(folder, "_results.json").read_text())


def write_demo_suite(*tests: dict[str, Any], **fields: Any) -> None:
    """Write `suite.json` with tests of the demo agent that fail, as it does not say "no such words"."""
    strict = {"criterion": "c", "strict": "contains", "text": "no such words"}
    common = {"guidelines": "-", "turns": [{"user": "Hello"}], "evaluations": [strict]}
    numbered = [common | {"name": f"t{number}"} | test for number, test in enumerate(tests)]
    suite = {"name": "S", "adapter": "demo", "agentId": "demo-retail", "tests": numbered} | fields
    Path("suite.json").write_text(json.dumps(suite))
