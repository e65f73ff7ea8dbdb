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
from commands import ci_evals as installed_command
from doc_pages import blocks, code, page, table

import ci_evals
from ci_evals.extension_registry import GROUP, NEEDED, Extensions, installed
from ci_evals.support.entry_points import EntryPoint, entry_points, installation_folders

pytestmark = pytest.mark.slow

PAGE = page("extensions.md")
TEST = {
    "name": "t",
    "guidelines": "g",
    "turns": [{"user": "hi"}],
    "maxTurns": 1,
    "evaluations": [{"criterion": "c", "strict": "contains", "text": "/desks/returns hi"}],
}
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
    (folder / info / "entry_points.txt").write_text(
        f"[console_scripts]\nacme = acme:main\n\n[{GROUP}]\n{text}\n"
    )


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A folder that `pip install --target` has filled: the package, and what stands for its lines."""
    root = tmp_path_factory.mktemp("target")
    (root / "ci_evals").symlink_to(Path(ci_evals.__file__).parent)
    (root / "suites").symlink_to(Path(ci_evals.__file__).parents[1] / "suites")
    ours = [f"{name} = ci_evals.extensions.{name}" for name in ("demo", "noise", "validate", "worlds")]
    write_lines(root, "\n".join(ours), "ci_evals-0.1.0.dist-info")
    return root


def run(root, *args, cwd, path=(), **env):
    """The command line of a package elsewhere."""
    env = CLEAN_ENV | {"PYTHONPATH": os.pathsep.join(map(str, (root, *path)))} | env
    command = [sys.executable, "-m", "ci_evals", *args]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=300)


def test_all_of_ours_are_installed():
    """By the same lines that the standard library reads."""
    lines = metadata.entry_points(group=GROUP)
    assert sorted(installed().names()) == sorted(line.name for line in lines)
    folder = Path(ci_evals.__file__).parent / "extensions"
    assert {*installed().names()} == {path.parent.name for path in folder.glob("*/__init__.py")}
    found = {(line.name, line.module) for line in entry_points(GROUP, installation_folders())}
    assert found == {(line.name, line.value) for line in lines}


def test_one_of_others_is_found_like_ours(target, tmp_path):
    """Its command is listed, has its options, and works."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_extension(site)
    assert "greet " in run(site, "--help", cwd=tmp_path).stdout
    assert run(site, "greet", "--who=Ada", cwd=tmp_path).stdout == "Hello Ada\n"


def test_a_command_that_is_gone_has_no_verdict(target, tmp_path):
    """As with our commands, only an orderly end passes: code that it runs may end the process with 0."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    package = write_extension(site)
    text = (package / "commands.py").read_text()
    (package / "commands.py").write_text(
        text.replace("context.show", "__import__('os')._exit(0) or context.show")
    )
    ran = run(site, "greet", cwd=tmp_path)
    assert ran.returncode == 3
    assert "ended without a verdict" in ran.stderr


def test_files_of_a_checkout_add_none(target, tmp_path):
    """Neither in the current folder nor in one that PYTHONPATH names, as an installation leaves them."""
    checkout = tmp_path / "checkout"
    write_extension(checkout, line=False)
    write_lines(checkout, "greeting = greeting", "greeting-1.0.dist-info")
    write_lines(checkout, "greeting = greeting", "greeting.egg-info")
    write_lines(checkout, "noise = greeting", "ci_evals-0.1.0.dist-info")
    for path in ((), (checkout, "")):
        ran = run(target, "--help", cwd=checkout, path=path)
        assert ran.returncode == 0, ran.stderr
        assert "greet" not in ran.stdout
        assert "noise " in ran.stdout
        assert ran.stderr == ""
    script = [sys.executable, str(Path(ci_evals.__file__).parents[1] / "entrypoint.py"), "--help"]
    ran = subprocess.run(
        script,
        cwd=checkout,
        env=CLEAN_ENV | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "greet" not in ran.stdout


def test_the_page_shows_one_that_works(target, tmp_path):
    """And names every part that there is."""
    (line,) = tomllib.loads(blocks("toml", PAGE)[0])["project"]["entry-points"][GROUP].items()
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, " = ".join(line))
    (site / line[1]).mkdir()
    for name, text in re.findall(r'^```python title="(.*?)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL):
        (site / name).write_text(text)
    first = installed_command("run", "demo:hr", "--provider=offline", "--no-gate", "--quiet", cwd=tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    ran = run(site, "score", "results", cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == ("100.0\n", "")
    suite = {"name": "s", "adapter": "acme", "apiKey": endpoints.KEY, "tests": [TEST]}
    (tmp_path / "s.json").write_text(json.dumps(suite))
    ran = run(site, "validate", "s.json", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith("baseUrl: is missing: the address of the desk\n")
    suite |= {"adapterOptions": {"desk": "returns"}}
    with endpoints.serving(lambda asked: {"said": f"{asked.path} {asked.body['text']}"}) as desk:
        (tmp_path / "s.json").write_text(json.dumps({**suite, "baseUrl": desk.url}))
        ran = run(site, "run", "s.json", "--provider=offline", "--quiet", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    check_provider(site, tmp_path)
    listed = {code(part): re.findall(r"`(\w+)", names) for part, names, _ in table("part", PAGE)}
    assert {part: set(names) for part, names in listed.items()} == {
        part: set(names) for part, names in NEEDED.items()
    }


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
JUDGED = """
name: S
adapter: python:agent:reply
tests:
  - name: T
    guidelines: Say hello.
    turns: [{user: auto}]
    maxTurns: 1
    evaluations: [{criterion: It greets}]
"""


def check_provider(site, folder):
    """The page's provider plays user and judge, is asked again after a fault, and its secret is hidden."""
    (site / "acme_gateway.py").write_text(GATEWAY)
    (folder / "suite.yaml").write_text(JUDGED)
    (folder / "agent.py").write_text("def reply(text): return 'Good day'")
    command = ("run", "suite.yaml", "--provider=acme", "--judge-check=off", "--output-dir=judged")
    ran = run(site, *command, cwd=folder, ACME_LOGIN="ada-4b7d10f3")
    assert ran.returncode == 0, ran.stderr
    saved = (folder / "judged/_results.json").read_text()
    assert "Hello from ***" in saved
    assert "ada-4b7d10f3" not in saved
    judged = ci_evals.load_results(folder / "judged")
    assert (judged.run.provider, judged.suites[0].models.judges) == ("acme", ("acme-large",))
    refused = run(site, "run", "suite.yaml", "--provider=acne", cwd=folder)
    assert "'openai', 'anthropic', 'acme', 'offline'" in refused.stderr


BROKEN = {
    "it is gone": (None, "ModuleNotFoundError: No module named 'broken'"),
    "it needs what is missing": (
        "import weather_station",
        "ModuleNotFoundError: No module named 'weather_station'",
    ),
    "it is no Python": ("def", "SyntaxError: "),
    "it ends the program": ("raise SystemExit('bye')", "SystemExit: bye"),
    "it has no commands": ("", "ImportError: broken.commands has no COMMANDS"),
    "its command has no options": ("COMMANDS = (print,)", "a command that was not made by `takes`"),
    "it prints two lines": ("raise ValueError('a\\n::error::b')", "ValueError: a"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_failing_extension_is_named_and_the_rest_works(target, tmp_path, case):
    """Once, on standard error, with the reason."""
    code, reason = BROKEN[case]
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_extension(site)
    write_lines(site, "broken = broken")
    if code is not None:
        (site / "broken").mkdir()
        (site / "broken/__init__.py").write_text("")
        (site / "broken/commands.py").write_text(code)
    ran = run(site, "greet", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "Hello all\n")
    assert ran.stderr.count("was not loaded") == 1
    assert ran.stderr.startswith("warning: the extension 'broken' of acme was not loaded: ")
    assert reason in ran.stderr


def test_a_reason_is_shown_without_secrets(target, tmp_path):
    """The code of others may quote what it finds in the environment."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, "broken = broken")
    (site / "broken").mkdir()
    (site / "broken/__init__.py").write_text("import os; raise ValueError(os.environ['OPENAI_API_KEY'])")
    ran = run(site, "schema", cwd=tmp_path, OPENAI_API_KEY="sk-0123456789abcdef", GITHUB_ACTIONS="true")
    json.loads(ran.stdout)
    assert ran.stderr.startswith("::warning title=ci-evals::the extension 'broken' of acme was not loaded: ")
    assert "sk-0123456789abcdef" not in ran.stderr


STEP_ENVIRONMENT = """
import json, os
from ci_evals.adapters.processes.environments import environment_for_step
from ci_evals.cli.environment_secrets import keys_in
from ci_evals.extension_registry import study_kinds
study_kinds()
print(json.dumps([environment_for_step(os.environ), keys_in(os.environ)]))
"""


def step_environment(site, cwd, **env):
    """The environment that a suite's step gets from that installation, and the keys that reports hide."""
    env = CLEAN_ENV | {"PYTHONPATH": str(site), "PYTHONWARNINGS": "ignore"} | env
    command = [sys.executable, "-c", STEP_ENVIRONMENT]
    ran = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(ran.stdout)


def test_secrets_of_our_providers_need_no_extension(target, tmp_path):
    """They are hidden from steps and reports where the extension of the provider is not installed."""
    tokens = {
        "CLAUDE_CODE_OAUTH_TOKEN": "token-of-claude-1",
        "COPILOT_GITHUB_TOKEN": "token-of-copilot-2",
        "COPILOT_PROVIDER_API_KEY": "key-of-copilot-3",
        "COPILOT_PROVIDER_BEARER_TOKEN": "bearer-of-copilot-4",
    }
    seen, hidden = step_environment(target, tmp_path, SHOP_API_KEY="shop-key-5", **tokens)
    assert not tokens.keys() & seen.keys()
    assert set(tokens.values()) <= set(hidden)
    assert seen["SHOP_API_KEY"] == "shop-key-5"


@pytest.mark.parametrize("part", ["providers", "result"])
def test_secrets_of_a_broken_extension_are_unknown(target, tmp_path, part):
    """Steps see no variable named like a secret: it may be its provider's, whichever part broke first."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, "broken = broken")
    (site / "broken").mkdir()
    (site / "broken/__init__.py").write_text("")
    (site / f"broken/{part}.py").write_text("raise ValueError('broken')")
    seen, _ = step_environment(site, tmp_path, ACME_API_KEY="acme-key-1", SHOP_URL="https://shop.example.com")
    assert "ACME_API_KEY" not in seen
    assert seen["SHOP_URL"] == "https://shop.example.com"


def test_a_name_counts_once(tmp_path, monkeypatch):
    """Nobody's extension takes the place of another's: the second is named."""
    write_extension(tmp_path, "first_of_name", "greet")
    write_extension(tmp_path, "second_of_name", "wave")
    monkeypatch.syspath_prepend(tmp_path)
    warnings = []
    extensions = Extensions([EntryPoint("x", "first_of_name", "a"), EntryPoint("x", "second_of_name", "b")])
    extensions.warn = warnings.append
    for _ in range(2):
        assert [module.__name__ for module in extensions.parts("commands")] == ["first_of_name.commands"]
    assert warnings == ["the extension 'x' of b was not loaded: a has an extension of this name"]


def test_ours_come_first():
    """Also before packages whose names do."""
    lines = [
        EntryPoint("noise", "theirs", "acme"),
        EntryPoint("noise", "ci_evals.extensions.noise", "ci-evals"),
    ]
    extensions = Extensions(lines)
    extensions.warn = lambda _: None
    assert [module.__name__ for module in extensions.parts("result")] == ["ci_evals.extensions.noise.result"]


def test_an_option_of_another_kind_is_a_failure(target, tmp_path):
    """`run` works without it."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, "broken = broken")
    (site / "broken").mkdir()
    (site / "broken/run_hook.py").write_text("OPTIONS = ('--x',)\nis_asked = check = elsewhere = print\n")
    ran = run(site, "run", "--help", cwd=tmp_path)
    assert "broken.run_hook has an option that is no `Option`" in ran.stderr
    assert "--min-score" in ran.stdout


def test_results_that_cannot_be_sent_leave_the_verdict(target, tmp_path):
    """Whatever an extension raises, and before or after it has begun."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, "late = late\nsudden = sudden")
    part = "OPTIONS = ()\n\n\ndef is_asked(settings):\n    return True\n\n\ndef check(*_):\n    pass\n\n\n"
    for name, send in (
        ("late", "async def send(*_):\n    raise ValueError('no route')\n"),
        ("sudden", "def send(*_):\n    raise KeyError('address')\n"),
    ):
        (site / name).mkdir()
        (site / name / "after_run.py").write_text(part + send)
    ran = run(site, "run", "demo:hr", "--provider=offline", cwd=tmp_path)
    assert "the results were not exported: ValueError: no route" in ran.stderr
    assert "the results were not exported: KeyError: 'address'" in ran.stderr
    results = json.loads((tmp_path / "results/_results.json").read_text())
    assert ran.returncode == results["gate"]["exitCode"]


def test_a_kind_of_agent_that_is_none_is_a_failure(target, tmp_path):
    """Other adapters work without it."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, "broken = broken")
    (site / "broken").mkdir()
    (site / "broken/agent_kinds.py").write_text("KINDS = {'x': 'y'}")
    ran = run(site, "validate", "demo:hr", cwd=tmp_path)
    assert "broken.agent_kinds has a kind that is no `AgentKind`" in ran.stderr
    assert ran.returncode == 0


def test_a_kind_under_the_name_of_another_is_refused(target, tmp_path):
    """Either may be meant."""
    site = tmp_path / "copy"
    shutil.copytree(target, site, symlinks=True)
    write_lines(site, "double = double")
    (site / "double").mkdir()
    (site / "double/agent_kinds.py").write_text(
        "from ci_evals.agent_registry import AgentKind\nKINDS = {'aui': AgentKind(about='another')}\n"
    )
    ran = run(site, "validate", "demo:hr", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "the adapter 'aui' is in ci_evals.agents and in double: uninstall one of them" in ran.stderr


def test_an_adapter_whose_extension_is_missing_is_no_adapter(target, tmp_path):
    """The suite that names it says so, and nothing is played."""
    suite = {"name": "s", "adapter": "rasa", "tests": [TEST]}
    (tmp_path / "s.json").write_text(json.dumps(suite))
    for command in ("validate", "run"):
        ran = run(target, command, "s.json", cwd=tmp_path)
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
        assert "s.json:1:26: adapter: 'rasa' is not an adapter; available: aui, " in ran.stderr


def test_in_python_a_failure_is_a_warning():
    """Where no command line is there to say it."""
    extensions = Extensions([EntryPoint("x", "no_such_module", "a")])
    with pytest.warns(RuntimeWarning, match="the extension 'x' of a was not loaded: ModuleNotFoundError"):
        assert list(extensions.parts("result")) == []
    assert extensions.names() == ()
    assert list(extensions.parts("report")) == []


def test_lines_are_read_as_installers_write_them(tmp_path):
    """With sections of others, comments, blanks, and bytes that are no text."""
    write_lines(tmp_path, "# none\n; none\n\n a.b=c.d \nno line\n[other]\nx = y", "Some_Thing-2.0.dist-info")
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info/entry_points.txt").write_bytes(f"[{GROUP}]\nz = z\xff".encode("latin-1"))
    (tmp_path / "empty-1.dist-info").mkdir()
    later = tmp_path / "later"
    write_lines(later, "q = q", "some.thing-1.0.dist-info")
    found = list(entry_points(GROUP, [str(tmp_path), str(tmp_path / "none"), str(later)]))
    assert set(found) == {EntryPoint("a.b", "c.d", "some-thing"), EntryPoint("z", "z\ufffd", "broken")}
