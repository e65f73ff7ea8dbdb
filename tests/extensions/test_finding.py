"""Extensions are found by the lines that installations write, and nowhere else."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import endpoints
import pytest
from commands import CLEAN_ENV
from commands import ci_evals as forked_command
from doc_pages import blocks, code, page, table

import ci_evals
from ci_evals.extension_registry import GROUP, NEEDED, Extensions, installed
from ci_evals.support.entry_points import EntryPoint, entry_points, installation_folders

pytestmark = pytest.mark.slow
PAGE = page("extensions.md")
TEST = {
    "name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "maxTurns": 1,
    "evaluations": [{"criterion": "c", "strict": "contains", "text": "/desks/returns hi"}],
}  # fmt: skip
SUITE = {"name": "s", "adapter": "", "tests": [TEST]}
COMMANDS = '''
from ci_evals.cli.settings.options import takes

@takes("{name}.settings", "Settings")
def {command}(settings, context):
    """Greet."""
    context.show("Hello " + settings.who)

COMMANDS = ({command},)
'''
SETTINGS = """
from dataclasses import dataclass
from typing import Annotated
from ci_evals.domain.options import Names, OptionSpec

@dataclass(frozen=True)
class Settings:
    who: Annotated[str, OptionSpec("Whom.", names=Names.TEXT)] = "all"
"""


def write_extension(folder, name="greeting", command="greet", line=True):
    """An extension with one command, and the line that an installation writes for it."""
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "commands.py").write_text(COMMANDS.format(name=name, command=command))
    (package / "settings.py").write_text(SETTINGS)
    if line:
        write_lines(folder, f"{name} = {name}", f"{name}-1.0.dist-info")
    return package


def write_lines(folder, text, info="acme-1.0.dist-info"):
    """The entry points of a distribution."""
    (folder / info).mkdir(parents=True, exist_ok=True)
    lines = f"[console_scripts]\nacme = acme:main\n\n[{GROUP}]\n{text}\n"
    (folder / info / "entry_points.txt").write_text(lines)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A folder that `pip install --target` has filled: the package, and what stands for its lines."""
    root = tmp_path_factory.mktemp("target")
    (root / "ci_evals").symlink_to(Path(ci_evals.__file__).parent)
    (root / "suites").symlink_to(Path(ci_evals.__file__).parents[1] / "suites")
    ours = [f"{name} = ci_evals.extensions.{name}" for name in ("demo", "noise", "validate", "worlds")]
    write_lines(root, "\n".join(ours), "ci_evals-0.1.0.dist-info")
    return root


@pytest.fixture
def site(target, tmp_path):
    """A copy of it, to install extensions into."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    return site


def install(site, name="broken", **parts):
    """Install an extension with these modules."""
    (site / name).mkdir()
    for part, text in ({"__init__": ""} | parts).items():
        (site / name / f"{part}.py").write_text(text)


# The fork server has imported the checkout's package; here another is imported, from PYTHONPATH.
FORGET = """
import os, sys
for name in [*sys.modules]:
    if name.partition(".")[0] in {"ci_evals", "fork_server"}:
        del sys.modules[name]
"""
ELSEWHERE = """
import runpy
sys.path[0] = os.getcwd()
runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
"""


def run(root, *args, cwd, program=ELSEWHERE, **env):
    """Run the command line of a package elsewhere, or another program that imports it."""
    script = root / "elsewhere.py"
    script.write_text(FORGET + program)
    return forked_command(*args, cwd=cwd, env={"PYTHONPATH": str(root)} | env, program=str(script))


def test_bundled_extensions_are_found_and_entry_points_read_as_by_importlib():
    lines = metadata.entry_points(group=GROUP)
    assert sorted(installed().names()) == sorted(line.name for line in lines)
    folder = Path(ci_evals.__file__).parent / "extensions"
    assert {*installed().names()} == {path.parent.name for path in folder.glob("*/__init__.py")}
    points = {(line.name, line.module) for line in entry_points(GROUP, installation_folders())}
    assert points == {(line.name, line.value) for line in lines}


def test_malformed_entry_points_and_later_copies_of_a_package_are_skipped(tmp_path):
    write_lines(tmp_path, "# none\n; none\n\n a.b=c.d \nno line\n[other]\nx = y", "Some_Thing-2.0.dist-info")
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info/entry_points.txt").write_bytes(f"[{GROUP}]\nz = z\xff".encode("latin-1"))
    (tmp_path / "empty-1.dist-info").mkdir()
    later = tmp_path / "later"
    write_lines(later, "q = q", "some.thing-1.0.dist-info")
    result = list(entry_points(GROUP, [str(tmp_path), str(tmp_path / "none"), str(later)]))
    assert set(result) == {EntryPoint("a.b", "c.d", "some-thing"), EntryPoint("z", "z\ufffd", "broken")}


def test_extension_command_is_listed_and_exits_3_if_process_is_ended_early(site, tmp_path):
    package = write_extension(site)
    assert "greet " in run(site, "--help", cwd=tmp_path).stdout
    assert run(site, "greet", "--who=Ada", cwd=tmp_path).stdout == "Hello Ada\n"
    # As with our commands, only an orderly end passes: code that it runs may end the process with 0.
    text = (package / "commands.py").read_text()
    exits = text.replace("context.show", "__import__('os')._exit(0) or context.show")
    (package / "commands.py").write_text(exits)
    ran = run(site, "greet", cwd=tmp_path)
    assert (ran.returncode, "ended without a verdict" in ran.stderr) == (3, True)


def test_extensions_in_a_checkout_are_not_loaded(target, tmp_path):
    """Neither in the current folder nor in one that PYTHONPATH names, as an installation leaves them."""
    checkout = tmp_path / "checkout"
    write_extension(checkout, line=False)
    write_lines(checkout, "greeting = greeting", "greeting-1.0.dist-info")
    write_lines(checkout, "greeting = greeting", "greeting.egg-info")
    write_lines(checkout, "noise = greeting", "ci_evals-0.1.0.dist-info")
    path = os.pathsep.join(map(str, (target, checkout, "")))
    module = [sys.executable, "-m", "ci_evals", "--help"]
    env = CLEAN_ENV | {"PYTHONPATH": path}
    named = subprocess.run(module, cwd=checkout, env=env, capture_output=True, text=True, check=True)
    for ran in (named, run(target, "--help", cwd=checkout)):
        assert ran.returncode == 0, ran.stderr
        assert ("greet" in ran.stdout, "noise " in ran.stdout, ran.stderr) == (False, True, "")
    script = [sys.executable, str(Path(ci_evals.__file__).parents[1] / "entrypoint.py"), "--help"]
    env |= {"PYTHONPATH": str(checkout)}
    ran = subprocess.run(script, cwd=checkout, env=env, capture_output=True, check=True)
    assert b"greet" not in ran.stdout


def test_example_extension_of_the_page_runs_and_page_lists_all_needed_names(site, tmp_path):
    (line,) = tomllib.loads(blocks("toml", PAGE)[0])["project"]["entry-points"][GROUP].items()
    write_lines(site, " = ".join(line))
    (site / line[1]).mkdir()
    for name, text in re.findall(r'^```python title="(.*?)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL):
        (site / name).write_text(text)
    suite = SUITE | {"adapter": "acme", "apiKey": endpoints.KEY}
    (tmp_path / "s.json").write_text(json.dumps(suite))
    ran = run(site, "validate", "s.json", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith("baseUrl: is missing: the address of the desk\n")
    with endpoints.serving(lambda asked: {"said": f"{asked.path} {asked.body['text']}"}) as desk:
        suite |= {"baseUrl": desk.url, "adapterOptions": {"desk": "returns"}}
        (tmp_path / "s.json").write_text(json.dumps(suite))
        ran = run(site, "run", "s.json", "--provider=offline", "--quiet", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = run(site, "score", "results", cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == ("100.0\n", "")
    check_provider(site, tmp_path)
    listed = {code(part): re.findall(r"`(\w+)", names) for part, names, _ in table("part", PAGE)}
    listed, needed = ({part: {*names} for part, names in each.items()} for each in (listed, NEEDED))
    assert listed == needed


GATEWAY = """
import json

asked = []

async def ask(model, login, system, text, schema):
    asked.append(model)
    if len(asked) == 1:
        raise ConnectionError("the first time")
    if schema is None:
        return f"Hello from {login}"
    evidence = [{"turn": 1, "quote": "Good day"}]
    basis = {"evidence": evidence, "rests_on": "quotes", "looked_at": []}
    return json.dumps({"reasoning": "It greets.", "met": True, "verdict": "pass", **basis})
"""


def check_provider(site, folder):
    """The page's provider plays user and judge, is asked again after a fault, and its secret is hidden."""
    (site / "acme_gateway.py").write_text(GATEWAY)
    judged = TEST | {"turns": [{"user": "auto"}], "evaluations": [{"criterion": "It greets"}]}
    suite = SUITE | {"adapter": "python:agent:reply", "tests": [judged]}
    (folder / "suite.json").write_text(json.dumps(suite))
    (folder / "agent.py").write_text("def reply(text): return 'Good day'")
    command = ("run", "suite.json", "--provider=acme", "--judge-check=off", "--output-dir=judged")
    ran = run(site, *command, cwd=folder, ACME_LOGIN="ada-4b7d10f3")
    assert ran.returncode == 0, ran.stderr
    saved = (folder / "judged/_results.json").read_text()
    assert "Hello from ***" in saved
    assert "ada-4b7d10f3" not in saved
    judged = ci_evals.load_results(folder / "judged")
    assert (judged.run.provider, judged.suites[0].models.judges) == ("acme", ("acme-large",))
    refused = run(site, "run", "suite.json", "--provider=acne", cwd=folder)
    assert "'openai', 'anthropic', 'acme', 'offline'" in refused.stderr


BROKEN = {
    "gone": (None, "ModuleNotFoundError: No module named 'gone'"),
    "needs_what_is_missing": ("import weather", "ModuleNotFoundError: No module named 'weather'"),
    "no_python": ("def", "SyntaxError: "),
    "ends_the_program": ("raise SystemExit('bye')", "SystemExit: bye"),
    "no_commands": ("", "ImportError: no_commands.commands has no COMMANDS"),
    "command_without_options": ("COMMANDS = (print,)", "a command that was not made by `takes`"),
    "prints_two_lines": ("raise ValueError('a\\n::error::b')", "ValueError: a"),
}


def test_failing_extensions_are_named_once_without_secrets_and_the_rest_works(site, tmp_path):
    write_extension(site)
    write_lines(site, "\n".join(f"{name} = {name}" for name in BROKEN))
    for name, (text, _) in BROKEN.items():
        if text is not None:
            install(site, name, commands=text)
    ran = run(site, "greet", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "Hello all\n")
    assert ran.stderr.count("was not loaded") == len(BROKEN)
    for name, (_, reason) in BROKEN.items():
        start = f"warning: the extension '{name}' of acme was not loaded: "
        (line,) = (line for line in ran.stderr.splitlines() if line.startswith(start))
        assert reason in line
    write_lines(site, "broken = broken")
    install(site, __init__="import os; raise ValueError(os.environ['OPENAI_API_KEY'])")
    ran = run(site, "schema", cwd=tmp_path, OPENAI_API_KEY="sk-0123456789abcdef", GITHUB_ACTIONS="true")
    json.loads(ran.stdout)
    assert ran.stderr.startswith("::warning title=ci-evals::the extension 'broken' of acme was not loaded: ")
    assert "sk-0123456789abcdef" not in ran.stderr


STEP_ENVIRONMENT = """
import json, warnings
warnings.simplefilter("ignore")
from ci_evals.adapters.processes.environments import environment_for_step
from ci_evals.cli.environment_secrets import keys_in
from ci_evals.extension_registry import study_kinds
study_kinds()
print(json.dumps([environment_for_step(os.environ), keys_in(os.environ)]))
"""


def step_environment(site, cwd, **env):
    """The environment that a suite's step gets from that installation, and the keys that reports hide."""
    ran = run(site, cwd=cwd, program=STEP_ENVIRONMENT, **env)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_steps_get_no_secrets_without_or_with_a_broken_extension(site, tmp_path):
    tokens = {"CLAUDE_CODE_OAUTH_TOKEN": "token-of-claude-1", "COPILOT_GITHUB_TOKEN": "token-of-copilot-2"}
    tokens |= {
        "COPILOT_PROVIDER_API_KEY": "key-of-copilot-3",
        "COPILOT_PROVIDER_BEARER_TOKEN": "bearer-of-copilot-4",
    }
    seen, hidden = step_environment(site, tmp_path, SHOP_API_KEY="shop-key-5", **tokens)
    assert not tokens.keys() & seen.keys()
    assert set(tokens.values()) <= set(hidden)
    assert seen["SHOP_API_KEY"] == "shop-key-5"
    for part in ("providers", "result"):
        write_lines(site, f"{part} = {part}")
        install(site, part, **{part: "raise ValueError('broken')"})
        seen, _ = step_environment(site, tmp_path, ACME_API_KEY="acme-key-1", SHOP_URL="https://a.example")
        assert ("ACME_API_KEY" in seen, seen["SHOP_URL"]) == (False, "https://a.example")


def test_extension_of_a_taken_name_is_not_loaded_and_bundled_one_is_preferred(tmp_path, monkeypatch):
    write_extension(tmp_path, "first_of_name", "greet")
    write_extension(tmp_path, "second_of_name", "wave")
    monkeypatch.syspath_prepend(tmp_path)
    warnings = []
    extensions = Extensions([EntryPoint("x", "first_of_name", "a"), EntryPoint("x", "second_of_name", "b")])
    extensions.warn = warnings.append
    for _ in range(2):
        assert [module.__name__ for module in extensions.parts("commands")] == ["first_of_name.commands"]
    assert warnings == ["the extension 'x' of b was not loaded: a has an extension of this name"]
    own = EntryPoint("noise", "ci_evals.extensions.noise", "ci-evals")
    extensions = Extensions([EntryPoint("noise", "theirs", "acme"), own])
    extensions.warn = lambda _: None
    assert [module.__name__ for module in extensions.parts("result")] == ["ci_evals.extensions.noise.result"]


def test_failed_import_of_an_extension_causes_runtime_warning():
    extensions = Extensions([EntryPoint("x", "no_such_module", "a")])
    with pytest.warns(RuntimeWarning, match="the extension 'x' of a was not loaded: ModuleNotFoundError"):
        assert list(extensions.parts("result")) == []
    assert (extensions.names(), list(extensions.parts("report"))) == ((), [])


AFTER_RUN = "OPTIONS = ()\n\n\ndef is_asked(settings):\n    return True\n\n\ndef check(*_):\n    pass\n\n\n"


def test_failing_export_of_an_extension_does_not_change_the_verdict(site, tmp_path):
    write_lines(site, "late = late\nsudden = sudden")
    install(site, "late", after_run=AFTER_RUN + "async def send(*_):\n    raise ValueError('no route')\n")
    install(site, "sudden", after_run=AFTER_RUN + "def send(*_):\n    raise KeyError('address')\n")
    (tmp_path / "agent.py").write_text("def reply(text): return text")
    (tmp_path / "s.json").write_text(json.dumps(SUITE | {"adapter": "python:agent:reply"}))
    ran = run(site, "run", "s.json", "--provider=offline", "--agent-in-process", cwd=tmp_path)
    assert "the results were not exported: ValueError: no route" in ran.stderr
    assert "the results were not exported: KeyError: 'address'" in ran.stderr
    assert ran.returncode == json.loads((tmp_path / "results/_results.json").read_text())["gate"]["exitCode"]


def test_invalid_option_or_agent_kind_of_an_extension_is_named(site, tmp_path):
    write_lines(site, "hook = hook\nkinds = kinds")
    install(site, "hook", run_hook="OPTIONS = ('--x',)\nis_asked = check = elsewhere = print\n")
    install(site, "kinds", agent_kinds="KINDS = {'x': 'y'}")
    ran = run(site, "run", "--help", cwd=tmp_path)
    assert (ran.returncode, "--min-score" in ran.stdout) == (0, True)
    assert "hook.run_hook has an option that is no `Option`" in ran.stderr
    ran = run(site, "validate", "demo:hr", cwd=tmp_path)
    assert (ran.returncode, "kinds.agent_kinds has a kind that is no `AgentKind`" in ran.stderr) == (0, True)


def test_missing_or_doubly_provided_adapter_is_refused_with_the_reason(target, tmp_path, site):
    (tmp_path / "s.json").write_text(json.dumps(SUITE | {"adapter": "rasa"}))
    for command in ("validate", "run"):
        ran = run(target, command, "s.json", cwd=tmp_path)
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
        assert "s.json:1:26: adapter: 'rasa' is not an adapter; available: aui, " in ran.stderr
    write_lines(site, "double = double")
    kinds = "from ci_evals.agent_registry import AgentKind\nKINDS = {'aui': AgentKind(about='another')}\n"
    install(site, "double", agent_kinds=kinds)
    ran = run(site, "validate", "demo:hr", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "the adapter 'aui' is in ci_evals.agents and in double: uninstall one of them" in ran.stderr
