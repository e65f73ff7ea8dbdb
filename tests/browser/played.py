"""Two real runs of the command: an agent that is well, and the same agent with a broken workflow."""

import json
from pathlib import Path

import world
from commands import ci_evals

from ci_evals.demo_agent.server import DemoServer

BROKEN = "RETURN_REQUEST"
_UNLIKED = "The agent makes no excuses"
_UNREADABLE = "The agent shows both prices and the difference"


def compare(folder: Path) -> None:
    """Plays `base` and `head` below `folder`; head is compared with base, and fails its gate."""
    with world.llm(_answer) as models:
        with DemoServer(noise=0.03, seed=3) as agent:
            _run(folder, "base", agent, models, "--min-score=50")
        with DemoServer(noise=0.06, seed=5, broken=[BROKEN]) as agent:
            _run(folder, "head", agent, models, "--max-drop=3", "--regression=significant", "--baseline=base")


def _run(folder: Path, name: str, agent: DemoServer, models: world.Models, *more: str) -> None:
    ran = ci_evals(
        "run",
        "demo:retail",
        "--adapter=aui",
        f"--base-url={agent.base_url}",
        "--agent-key=k-demo-123456",
        "--loops=3",
        "--parallel=8",
        "--max-errors=6",
        f"--output-dir={name}",
        "--quiet",
        *more,
        cwd=folder,
        env=models.env,
    )
    assert ran.returncode in {0, 1}, ran.stderr
    assert (folder / name / "report.html").is_file(), ran.stderr


def _answer(asked: world.Asked) -> str:
    """A judge that dislikes one thing, and cannot be understood about another; a user of few words."""
    if not asked.wants_json:
        return "###STOP###" if "anything else" in asked.text else "Yes, please."
    if _UNREADABLE in asked.text:
        return "Hard to say."
    return json.dumps(
        {
            "reasoning": "The first reply does."
            if _UNLIKED not in asked.text
            else "The reply blames the carrier.",
            "verdict": "fail" if _UNLIKED in asked.text else "pass",
            "evidence": [1],
        }
    )
