"""Nobody waits for what is imported later or not at all: neither for help nor for a run's first request."""

import json
import sys

import endpoints
import pytest
import world
from commands import CLEAN_ENV, ci_evals
from each_row import each_row
from programs import run_captured

from ci_evals.extension_registry import installed

pytestmark = pytest.mark.slow

TOLD_AT_THE_END = """
import atexit, runpy, sys
atexit.register(lambda: print("\\n" + " ".join(sys.modules)))
runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
"""
FORKED_FOR_EACH = """
import json, os, runpy, sys
import ci_evals.cli.commands.run, ci_evals.job, ci_evals.runner, ci_evals.wiring
import aiohttp

def tell(event, arguments):
    if event == "socket.connect":
        print("\\n" + " ".join(sys.modules), flush=True)
        os._exit(0)

print("\\n" + " ".join(sys.modules), flush=True)
for command in json.loads(sys.argv[1]):
    if not os.fork():
        sys.argv[1:] = command
        sys.addaudithook(tell)
        runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
    os.wait()
"""
"""Imports what all runs import, then forks each run, which lists its modules at its first request."""

NEEDED_FOR = {
    "its models": ["openai", "anthropic"],
    "prompts and reports": ["jinja2"],
    "reports": ["svg", "tabulate", "junit_xml"],
    "a terminal": ["rich"],
    "suites and tables in YAML": ["yaml"],
    "agents with an interface of their own": ["jsonpath"],
    "checks that compare texts or meanings": ["rapidfuzz", "model2vec"],
    "Python code and plug-ins": ["ci_evals.library", "ci_evals.contract"],
    "rejudge": ["ci_evals.extension_support.rejudging"],
    "import": ["ci_evals.extensions.importers.importing"],
    "suites that name it": ["ci_evals.extensions.demo.server"],
    "agents that are code": ["ci_evals.agents.python.loading", "ci_evals.agents.command.agent"],
    "--record": ["ci_evals.adapters.journal.capture"],
    "--replay": ["ci_evals.adapters.journal.replay"],
    "--record and --replay": ["ci_evals.wiring.recordings"],
    "GitHub": [f"ci_evals.adapters.github.{name}" for name in ("api", "baseline", "comments")],
    "results": [f"ci_evals.reports.{name}" for name in ("report_files", "junit", "page", "console")],
    "the comment": ["ci_evals.reports.markdown.documents"],
}
"""Modules that are imported late, by their use."""
LATE = {module for modules in NEEDED_FOR.values() for module in modules}


def printed(code: str, *args: str, **env: str) -> list[str]:
    ran = run_captured([sys.executable, "-c", code, *args], env=CLEAN_ENV | env, timeout=300)
    assert ran.stdout, ran.stderr
    assert "error: " not in ran.stderr
    return ran.stdout.splitlines()


def imported(code: str, *args: str, **env: str) -> set[str]:
    """All modules and packages that are there when the code tells of them."""
    return set(printed(code, *args, **env)[-1].split())


def packages(modules: set[str]) -> set[str]:
    """Those of others, by their own names."""
    foreign = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    return {name for name in foreign if not name.startswith("_") and name != "sitecustomize"}


def test_help_imports_only_command_line_modules():
    modules = imported(TOLD_AT_THE_END, "--help")
    assert packages(modules) == {"ci_evals", "typer", "annotated_doc", "shellingham"}
    assert not modules & {"asyncio", "ssl", "email", "http", "importlib.metadata"}
    ours = {name for name in modules if name.startswith("ci_evals.") and not name.startswith("ci_evals.cli")}
    expected = {
        "_version", "domain", "domain.errors", "domain.options", "domain.providers",
        "adapters", "adapters.github", "adapters.github.command_files",  # watches the runner's files; 0.2 ms
        "extension_registry", "extensions", *(f"extensions.{name}" for name in installed().names()),
        "support", "support.documentation", "support.entry_points",
    }  # fmt: skip
    commands = {module.__name__ for module in installed().parts("commands")}
    assert ours == {f"ci_evals.{name}" for name in expected} | commands


def test_validate_imports_no_client_or_report_and_collects_no_garbage_at_end():
    code = TOLD_AT_THE_END.replace("sys.modules", "[*sys.modules, str(gc.get_freeze_count())]")
    code = code.replace("import atexit", "import gc, atexit")
    modules = imported(code, "validate", "quack:artlist/refunds")
    (frozen,) = [int(word) for word in modules if word.isdigit()]
    assert frozen > 10_000
    of_a_run = {"httpx2", "aiohttp", "asyncio", "ci_evals.runner", "ci_evals.wiring", "ci_evals.job"}
    assert modules & (LATE | of_a_run) == set()


SENDS = {"send": {"body": "{{message}}"}, "reply": {"text": "$"}}
READERS_OF_LISTS = {"aui.trace", "chat_messages", "chat_thread"}

ROOMS = (
    "ci_evals.extensions.worlds.", "ci_evals.extensions.spans.", "ci_evals.extension_support.span_reading",
)  # fmt: skip
SHARED = {"agent_server", "options", "plugins", "server_agent", "settings"}


def folder(name: str, *modules: str) -> set[str]:
    return {f"{name}.{module}" for module in ("options", *modules)}


def agent_modules(modules: set[str]) -> set[str]:
    """Those of agents, by what stands behind their layer.

    The facts about all kinds are there in any run, and so are the commands of extensions.
    """
    extensions = [kinds.__package__ for kinds in installed().parts("agent_kinds")]
    folders = ["ci_evals.agents.", *(f"{extension}." for extension in extensions)]
    ours = {module for module in modules if module.startswith(tuple(folders))}
    packages = {module.rpartition(".")[0] for module in ours}
    facts = {module for module in ours if module.endswith(".agent_kinds")}
    of_commands = {f"{extension}.{part}" for extension in extensions for part in ("commands", "settings")}
    return {module.split(".", 2)[2] for module in ours - packages - facts - of_commands}


ADAPTERS = {
    "aui": folder("aui", "agent", "wire", "trace"), "openai": folder("openai_api", "chat_agent", "chat_wire"),
    "responses": folder("openai_api", "chat_agent", "chat_wire", "responses_agent", "responses_wire"),
    "http": folder("http", "agent", "wire", "values") | READERS_OF_LISTS,
    "langgraph": folder("langgraph", "agent", "wire"),
    "ag-ui": folder("ag_ui", "agent", "json_patch", "run", "wire") | {"chat_thread"},
    "a2a": folder("a2a", "agent", "card", "wire"), "adk": folder("adk", "agent", "wire"),
    "rasa": folder("rasa", "agent", "wire"),
}  # fmt: skip
"""The modules of each adapter. Two read lists of integrations and parameters by `aui_trace`."""
MODEL = "openai model"
"""The run with a model that is asked, by the adapter `aui`."""


@pytest.fixture(scope="module")
def modules_of_adapters(tmp_path_factory):
    """The modules of a run of each adapter, of one with a model, and under "" those that any run has."""
    folder = tmp_path_factory.mktemp("adapters")
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "evaluations": [{"criterion": "c"}]}
    common = {"agentId": "a", "apiKey": "agent-key-1", "baseUrl": "http://127.0.0.1:9", "tests": [test]}
    options = {"responses": {"api": "responses"}, "http": SENDS}
    commands = []
    for name in ADAPTERS:
        suite = {"name": name, "adapter": "openai" if name == "responses" else name, **common}
        if name in options:
            suite["adapterOptions"] = options[name]
        (folder / f"{name}.json").write_text(json.dumps(suite))
        results = f"--output-dir={folder / name}"
        commands.append(["run", str(folder / f"{name}.json"), "--provider=offline", results])
    results = f"--output-dir={folder / MODEL}"
    commands.append(["run", str(folder / "aui.json"), "--provider=openai", results])
    models = {"LLM_API_KEY": "llm-key-1", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    lines = printed(FORKED_FOR_EACH, json.dumps(commands), **models)
    modules = [set(line.split()) for line in lines if line.startswith("sys ")]
    return dict(zip(["", *ADAPTERS, MODEL], modules, strict=True))


@pytest.mark.parametrize(("name", "needed"), [("aui", set()), (MODEL, {"openai"})])
def test_modules_needed_later_are_not_imported_before_first_request(modules_of_adapters, name, needed):
    modules = modules_of_adapters[name]
    assert ADAPTERS["aui"] <= agent_modules(modules)
    assert modules & LATE <= needed


@each_row("name", ADAPTERS)
def test_run_imports_adapter_of_its_suite_only(modules_of_adapters, name):
    assert not agent_modules(modules_of_adapters[""]) & ADAPTERS[name]
    modules = modules_of_adapters[name]
    assert agent_modules(modules) == SHARED | ADAPTERS[name]
    assert not [module for module in modules if module.startswith(ROOMS)]


def test_run_with_rejected_agent_key_imports_no_sdk(tmp_path):
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "auto"}], "evaluations": [{"criterion": "c"}]}
    with endpoints.serving(lambda _asked: world.fault(401, "no such key")) as agent:
        suite = {"name": "s", "adapter": "openai", "model": "m", "baseUrl": agent.url, "tests": [test]}
        (tmp_path / "suite.json").write_text(json.dumps({**suite, "apiKey": "agent-key-1"}))
        command = ("run", str(tmp_path / "suite.json"), f"--output-dir={tmp_path / 'results'}")
        models = {"LLM_API_KEY": "llm-key-1", "OPENAI_BASE_URL": agent.url}
        modules = imported(TOLD_AT_THE_END, *command, **models)
    assert "ci_evals.reports.report_files" in modules
    assert "openai" not in modules


def test_run_collects_garbage_but_not_imported_modules(tmp_path):
    agent = "import gc\ndef reply(message): return f'{gc.isenabled()} {gc.get_freeze_count() > 10_000}'\n"
    (tmp_path / "agent.py").write_text(agent)
    check = {"criterion": "c", "strict": "contains", "text": "True True"}
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "maxTurns": 1, "evaluations": [check]}
    suite = {"name": "s", "adapter": "python:agent:reply", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    ran = ci_evals("run", "suite.json", "--provider=offline", "--agent-in-process", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout
