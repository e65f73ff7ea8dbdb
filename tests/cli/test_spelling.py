"""Settings in messages: options on the command line, inputs in a workflow, arguments in Python."""

import ast
import re
from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path

from each_row import each_row

import ci_evals
from ci_evals.cli.app import _all_options
from ci_evals.cli.settings.spelling import spell
from ci_evals.cli.terminal.console import Console
from ci_evals.support.redaction import Redactor

PACKAGE = Path(ci_evals.__file__).parent
COMMAND_LINE_FOLDERS = ("cli", "extensions")
"""Folders that are the command line, or have commands."""
FLAG = re.compile(r"--[a-z][a-z-]+")
SETTING = re.compile(r"`([a-z][a-z0-9_]*)=")

OTHER_PROGRAMS = {
    "adapters/git/changes.py": "git",
    "adapters/journal/journal.py": "git",
    "support/entry_points.py": "pip",
}
"""Modules that name options of other programs."""
COMMANDS_TO_TYPE = {
    "reports/page/test_data.py": "the command that repeats a test",
    "reports/story/advice.py": "the commands that join shards and draw a sheet",
    "reports/story/next_step.py": "the commands that show failures and repeat a test",
}
"""Modules that name a whole command, for somebody to type."""
COMMAND_LINE_MODULES = {
    "cli/app.py": "the options that Typer has",
    "cli/commands/list_suites.py": "a command",
    "cli/env_files.py": "it is no input",
    "cli/process/guard.py": "a command line that cannot be read",
    "cli/process/supervision.py": "the options that Typer has",
    "extensions/benchmarks/gaia.py": "a row of the docs",
    "extensions/calibration/sheet.py": "commands",
    "extensions/calibration/study.py": "a command",
    "extensions/chat/chatting.py": "its help, and commands",
    "extensions/demo/serving.py": "a command",
    "extensions/importers/imported.py": "a comment in a suite",
    "extensions/importers/importing.py": "a command",
    "extensions/init/starter.py": "commands",
    "extensions/mcp_server/toolbox.py": "a command, and limits that its command line sets",
    "extensions/model_programs/claude_code_llm.py": "another program's",
    "extensions/model_programs/copilot_llm.py": "another program's",
    "extensions/model_programs/program_llm.py": "another program's",
    "extensions/mutate/next_steps.py": "commands",
    "extensions/mutate/report.py": "standard output of mutate",
    "extensions/noise/report.py": "standard output of noise",
    "extensions/plan/estimate.py": "standard output of plan",
    "extensions/plan/plan.py": "standard output of plan",
    "extensions/preference/study.py": "standard output of preference",
    "extensions/otlp_export/after_run.py": "help",
    "extensions/rasa/agent.py": "another program's",
    "extensions/rasa/options.py": "another program's",
    "extensions/ray_cluster/run_hook.py": "help",
    "extensions/result_files/junit.py": "another program's",
}
"""Modules of commands, apart from their settings, that name a flag in a text, and what that is."""


def core_modules() -> list[str]:
    """The sources of the core, by their paths in the package."""
    files = [path for kind in ("*.py", "*.j2") for path in PACKAGE.rglob(kind)]
    names = sorted(path.relative_to(PACKAGE).as_posix() for path in files)
    return [name for name in names if not name.startswith(tuple(f"{edge}/" for edge in COMMAND_LINE_FOLDERS))]


@each_row(
    ("message", "on_command_line", "in_workflow"),
    [
        ("`min_score=nan`: no", "--min-score=nan: no", "`min-score: nan`: no"),
        ("see `base_url=`", "see --base-url", "see `base-url`"),
        ("omit `shard=` or `loops=`", "omit --shard or --loops", "omit `shard` or `loops`"),
        ("`temperature=0` and `agentId`", "`temperature=0` and `agentId`", "`temperature=0` and `agentId`"),
        ("`break=x`, `break_=x`", "`break=x`, --break=x", "`break=x`, `break: x`"),
    ],
)
def test_settings_in_messages_are_spelled_as_options_or_inputs(message, on_command_line, in_workflow):
    """A model's refusal or a key of a suite is no setting."""
    assert spell(message, _all_options, as_inputs=False) == on_command_line
    assert spell(message, _all_options, as_inputs=True) == in_workflow


def test_secret_in_value_of_setting_is_redacted_before_spelling():
    log = StringIO()
    as_option = partial(spell, options=_all_options, as_inputs=False)
    console = Console(log, Redactor(["key-4b7d10f3"]), spell=as_option)
    console.say("`base_url=http://key-4b7d10f3@x`: no")
    assert "key-4b7d10f3" not in log.getvalue()
    assert log.getvalue().startswith("--base-url=http://")


def test_core_modules_do_not_mention_command_line_options():
    """A library user who passes `min_score=nan` does not read about `--min-score`."""
    texts = {name: (PACKAGE / name).read_text().replace("<!--", "") for name in core_modules()}
    result = {name for name, text in texts.items() if FLAG.search(text)}
    assert result - OTHER_PROGRAMS.keys() - COMMANDS_TO_TYPE.keys() == set()
    assert (OTHER_PROGRAMS.keys() | COMMANDS_TO_TYPE.keys()) - result == set()


def test_only_listed_command_modules_contain_option_names():
    """In a workflow nobody reads about `--min-score`."""
    modules = [path for edge in COMMAND_LINE_FOLDERS for path in (PACKAGE / edge).rglob("*.py")]
    others = [path for path in modules if "settings" not in (path.stem, path.parent.name)]
    result = {path for path in others if any(map(FLAG.search, strings_in(path)))}
    assert {path.relative_to(PACKAGE).as_posix() for path in result} == COMMAND_LINE_MODULES.keys()


def test_every_setting_in_messages_is_an_option():
    """A misspelled one would reach users as it is."""
    modules = ((path, text) for path in PACKAGE.rglob("*.py") for text in strings_in(path))
    used = {(path.name, name) for path, text in modules for name in SETTING.findall(text)}
    assert {one for one in used if one[1] not in _all_options()} == set()


def strings_in(path: Path) -> Iterator[str]:
    """The texts in a module, without docstrings."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
