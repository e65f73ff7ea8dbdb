"""Two real runs of the command: a working agent, and the same agent with a broken workflow."""

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import world
from commands import ci_evals

from ci_evals.conversation.scripted_user import ScriptedUser
from ci_evals.extensions.demo.server import DemoServer

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
    options = ["--adapter=aui", f"--base-url={agent.base_url}", "--agent-key=k-demo-123456", "--loops=3"]
    options += ["--parallel=8", "--max-errors=6", f"--output-dir={name}", "--quiet", *more]
    ran = ci_evals("run", "demo:retail", *options, cwd=folder, env=models.env)
    assert ran.returncode in {0, 1}, ran.stderr
    assert (folder / name / "report.html").is_file(), ran.stderr


def _answer(asked: world.ModelRequest) -> str:
    """A judge that dislikes one thing, and cannot be understood about another."""
    if not asked.wants_json:
        return _next_message(asked)
    if _UNREADABLE in asked.text:
        return "Hard to say."
    if _UNLIKED in asked.text:
        return fakes.judge_answer("fail", "The first reply blames the carrier.")
    return fakes.judge_answer("pass", "The first reply does.")


def _next_message(asked: world.ModelRequest) -> str:
    """The lines of a user without a model, who knows the data that the agent asks for."""
    turns = _within("conversation", asked.text) or []
    texts = [SimpleNamespace(user=turn["you"], agent=turn["agent"]) for turn in turns]
    test = SimpleNamespace(user_info=_within("user_info", asked.system) or {})
    return asyncio.run(ScriptedUser().next_message(test, texts))


def _within(tag: str, prompt: str) -> Any:
    result = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return json.loads(result[1]) if result else None
