"""The pages on agents that are code, followed step by step."""

import re
import shlex
import sys
import tomllib

import pytest
from commands import CLEAN_ENV, ci_evals, write_suite
from doc_pages import ROOT, blocks, code, table, without_times
from page_files import message_pattern, write_files
from programs import run_captured

from ci_evals.agents.code import plain_reply
from ci_evals.agents.python.agent import Conversation

pytestmark = pytest.mark.slow

PYTHON = (ROOT / "docs/python-agent.md").read_text()
ADAPTER = (ROOT / "docs/writing-an-adapter.md").read_text()


def commands(page):
    return [shlex.split(line) for block in blocks("sh", page) for line in block.splitlines()]


def test_python_page_example_prints_what_is_shown_and_fails_for_worse_agent(tmp_path):
    write_files(PYTHON, tmp_path)
    (command,) = [words for words in commands(PYTHON) if words[0] == "ci-evals"]
    ran = ci_evals(*command[1:], cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    printed = [without_times(line) for line in ran.stdout.splitlines()]
    (shown,) = blocks("text", PYTHON)
    for line in shown.splitlines():
        assert without_times(line) in printed, ran.stdout
    file = tmp_path / "shop.py"
    file.write_text(file.read_text().replace('"refund" not in', '"money" not in'))
    assert ci_evals("run", "evals/refunds.json", "--provider=offline", cwd=tmp_path).returncode == 1


def test_vendored_packages_are_found_but_do_not_shadow_installed_ones(tmp_path):
    write_files(PYTHON, tmp_path)
    (lines,) = [block for block in blocks("python", PYTHON) if "sys.path" in block]
    shop = tmp_path / "shop.py"
    shop.write_text(f"{lines}\nimport acme_refunds\n{shop.read_text()}")
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor/acme_refunds.py").write_text("")
    (tmp_path / "vendor/pydantic.py").write_text("1/0  # another version than ours must not come first")
    assert ci_evals("run", "evals/refunds.json", "--provider=offline", cwd=tmp_path).returncode == 0


def test_agent_pages_describe_every_session_field_and_reply_key():
    documented = {name for cell, _ in table("of `session`", PYTHON) for name in map(code, cell.split(", "))}
    assert documented == set(Conversation.__dataclass_fields__)
    assert [code(key) for key, _ in table("key", ADAPTER)] == list(plain_reply.KEYS)
    assert all(f"`{key}`" in PYTHON for key in plain_reply.KEYS)


WRONG = [
    "raise OSError('no disk')", "import no_such", "def replay(message): return message",
    "def reply(): return 'Hi'", "reply = 'Hi'", "def reply(message): raise KeyError('order')",
    "def reply(message): pass", "def reply(message): return {'text': 'Hi', 'tools': []}",
    "def reply(message): return {'words': 'Hi'}",
    "def reply(message): return {'text': 'Hi', 'params': {'a': object()}}",
    "import time\ndef reply(message): time.sleep(5)",
    "import os\ndef reply(message):\n    print('No room')\n    os._exit(0)",
]  # fmt: skip


def test_python_page_lists_exactly_the_real_error_messages(tmp_path):
    """The first six rows are those of exit code 2."""
    patterns, shown = [message_pattern(code(message)) for message, _ in table("message", PYTHON)], set()
    turns = [{"user": "Hello", "timeout": 0.3}]
    for number, source in enumerate([*WRONG, None]):  # the last suite names a file that is not there
        if source:
            (tmp_path / f"shop{number}.py").write_text(source)
        suite = write_suite(tmp_path, {"turns": turns}, adapter=f"python:shop{number}:reply", apiKey=None)
        ran = ci_evals("run", suite, "--retries=0", "--quiet", cwd=tmp_path)
        text = without_times(ran.stderr if ran.returncode == 2 else ran.stdout)
        rows = [number for number, row in enumerate(patterns) if re.search(row, text)]
        assert rows, text
        assert ran.returncode == (2 if rows[0] < 6 else 3), text
        shown |= {*rows}
    assert shown == {*range(len(patterns))}


def test_adapter_page_examples_pass_and_class_gets_suite_options(tmp_path):
    write_files(ADAPTER, tmp_path)
    (command,) = [words for words in commands(ADAPTER) if words[0] == "ci-evals"]
    evaluations = [{"criterion": "Counts", "strict": "contains", "text": "Message 1, in a dry tone."}]
    fields = {"adapter": "python:shop:Shop", "adapterOptions": {"tone": "dry"}, "apiKey": None}
    write_suite(tmp_path, {"evaluations": evaluations}, **fields)
    for arguments in (command[1:], ["run", "suite.json"]):
        ran = ci_evals(*arguments, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr + ran.stdout


def test_plugin_of_adapter_page_passes_contract_and_is_found_by_name(tmp_path):
    """With pytest alone, as its author would run it. Its test is no part of the package."""
    write_files(ADAPTER, tmp_path)
    setuptools = tomllib.loads((tmp_path / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert [f"{name}.py" for name in setuptools["py-modules"]] == ["acme_evals.py"]
    assert (tmp_path / "acme_evals.py").is_file()
    (command,) = [words for words in commands(ADAPTER) if words[0] == "pytest"]
    plain_pytest = ["-p", "no:asyncio", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", "error"]
    done = run_captured([sys.executable, "-m", *command, *plain_pytest], cwd=tmp_path, env=CLEAN_ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d\d passed in", done.stdout), done.stdout
    # Now in a folder that looks to Python as if it were installed. Nobody listens at the suite's address.
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    info = tmp_path / "acme_evals-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"]["ci_evals.adapters"]
    lines = [f"{name} = {target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[ci_evals.adapters]", *lines]))
    suite = write_suite(tmp_path, adapter="acme", apiKey="right-key", baseUrl="http://127.0.0.1:1")
    ran = ci_evals("run", suite, "--retries=0", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 3, ran.stderr
    assert "adapter 'acme' of the package 'acme-evals' 1.0 raised URLError" in ran.stdout
