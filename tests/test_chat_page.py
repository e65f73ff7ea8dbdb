"""docs/chat.md: the chat that it shows, its table of commands, and its script."""

import re

import pytest
import yaml
from commands import ci_evals
from doc_pages import blocks, code, page, table

from ci_evals.extensions.chat.chatting import HELP

PAGE = page("chat.md")
SECONDS = re.compile(r"[\d.]+ s$", re.MULTILINE)


def test_chat_page_lists_every_command():
    listed = [line for line in HELP.splitlines() if not line.startswith("//")]
    described = [code(cell) for cell, _ in table("command", PAGE)]
    assert len(listed) == len(described)
    assert all(line.startswith(command) for line, command in zip(listed, described, strict=True))


@pytest.mark.slow
@pytest.mark.end_to_end
def test_chat_page_examples_give_the_shown_output(tmp_path):
    [shown] = blocks("text", PAGE)
    lines = [line.removeprefix("you>   ") for line in shown.splitlines() if line.startswith("you>")]
    done = ci_evals("chat", "demo:hr", cwd=tmp_path, typed="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    assert SECONDS.sub("1 s", done.stdout) == SECONDS.sub("1 s", shown)
    [_, script] = [block for block in blocks("sh", PAGE) if "printf" in block or "--test" in block]
    typed = script.partition("'")[2].partition("'")[0].encode().decode("unicode_escape")
    assert ci_evals("chat", "demo:hr", cwd=tmp_path, typed=typed).returncode == 0
    assert yaml.safe_load((tmp_path / "evals/day-off.yaml").read_text())["agentId"] == "demo-hr"
    done = ci_evals("run", "evals/day-off.yaml", "--provider=offline", "--quiet", cwd=tmp_path)
    assert done.returncode == 0
