"""`python:module:attribute`: what is loaded, and the messages if it cannot be."""

import sys

import pytest
from agent_sessions import replies_of

from ci_evals.agents.python.loading import load_python
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.transcript import Reply

PAGE = "see docs/python-agent.md"


@pytest.fixture(autouse=True)
def restored_modules(monkeypatch):
    """Restore the path and the imported modules after a test."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if name.startswith("mine"):
            del sys.modules[name]


def load(folder, text, attribute="reply", module="mine", **settings):
    file = folder / f"{module.replace('.', '/')}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return load_python(f"python:{module}:{attribute}", AgentSettings(**settings), folder)


async def reply_of(agent) -> Reply:
    return (await replies_of(agent, "Hello"))[0]


def class_of_agents(init=""):
    """The source of a class of agents that reply with the message and their attributes."""
    methods = """
    def open_session(self):
        return None
    def send_message(self, session, text):
        return f"{text} {self.__dict__}"
"""
    return f"class Agent:\n    {init}\n{methods}"


OPTIONS = "Hello {'options': {'tone': 'warm'}}"


async def test_escalation_tool_or_explicit_flag_decides_hand_over(tmp_path):
    calls = "def reply(message): return {'text': 'Hi', 'toolCalls': [{'name': message}]}"
    silent = "def reply(message): return {'text': 'Hi', 'escalated': False}"
    for number, (text, tool, expected) in enumerate(
        ((calls, "Hello", True), (calls, "to_person", False), (silent, "to_person", None))
    ):
        agent = load(tmp_path, text, module=f"mine{number}", options={"escalationTools": [tool]})
        assert (await reply_of(agent)).hand_over is expected


@pytest.mark.parametrize(("text", "attribute", "answer"), [
    ("def reply(message): return message", "reply", "Hello"),
    ("async def reply(message, session): return session.options['tone']", "reply", "warm"),
    (class_of_agents(), "Agent", "Hello {}"),
    (class_of_agents("def __init__(self, told): self.options = told"), "Agent", OPTIONS),
    (class_of_agents("def __init__(self, options=None): self.options = options"), "Agent", OPTIONS),
    (class_of_agents("def __init__(self, size=3): self.size = size"), "Agent", "Hello {'size': 3}"),
    (f"{class_of_agents()}\nagent = Agent()", "agent", "Hello {}"),
    ("class Agent:\n    def __call__(self, message): return message", "Agent", "Hello"),
    ("class Shop:\n    @staticmethod\n    def reply(message): return message", "Shop.reply", "Hello"),
])  # fmt: skip
async def test_agent_is_loaded_from_function_class_object_or_attribute(tmp_path, text, attribute, answer):
    reply = await reply_of(load(tmp_path, text, attribute, options={"tone": "warm"}))
    assert reply.agent == answer


async def test_module_is_imported_from_agent_folder_with_its_helpers(tmp_path):
    """`python -m` does the same."""
    (tmp_path / "mine_helper.py").write_text("WORD = 'helped'")
    text = "import mine_helper\ndef reply(message): return mine_helper.WORD"
    assert (await reply_of(load(tmp_path, text, module="minepkg.bot"))).agent == "helped"
    assert sys.path[0] == str(tmp_path)


IN_MODULE = r"\(.*mine\.py"
RAISING_CLASS = f"{class_of_agents('def __init__(self): raise OSError(3)')}\nreply = Agent"
CLASS_WITH_ARGUMENTS = f"{class_of_agents('def __init__(self, a, b): pass')}\nreply = Agent"


@pytest.mark.parametrize(("text", "message"), [
    ("def replay(message): return 1", rf"'mine' {IN_MODULE}\) has no 'reply'; did you mean 'replay'\?"),
    ("import no_such", rf"No module named 'no_such' {IN_MODULE}:1\); install 'no_such' next to ci-evals"),
    ("\n1/0", rf"'mine' cannot be imported: ZeroDivisionError: division by zero {IN_MODULE}:2\)"),
    ("def reply(:", rf"cannot be imported: SyntaxError: .*{IN_MODULE}:1\)"),
    ("import sys; sys.exit('no')", "cannot be imported: SystemExit: no"),
    ("reply = 'Hello'", "python:mine:reply is not an agent but of the type str"),
    ("def reply(): pass", r"python:mine:reply: reply takes \(\), but is called as reply\(message\) or"),
    (RAISING_CLASS, rf"Agent could not be made: OSError: 3 {IN_MODULE}:2, in __init__\)"),
    (CLASS_WITH_ARGUMENTS, "Agent could not be made: TypeError"),
    ("class reply: pass", "is not an agent but of the type reply"),
])  # fmt: skip
def test_invalid_agent_code_is_rejected_with_reason_and_line(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        load(tmp_path, text)


async def test_module_that_runs_its_agent_at_import_is_rejected_with_advice(tmp_path):
    """Quick starts do so, by `run_sync` at their end."""
    text = "import asyncio\nloop = asyncio.get_event_loop()\nloop.run_until_complete(loop.create_future())"
    with pytest.raises(UsageError, match=r":3\); put what runs the agent below `if __name__ == '__main__':`"):
        load(tmp_path, text)


def test_missing_module_or_file_name_instead_of_module_is_rejected(tmp_path):
    (tmp_path / "mine.py").write_text("def reply(message): return 'Hi'")
    with pytest.raises(UsageError, match=r"a module is named without '.py': 'python:mine:…'"):
        load_python("python:mine.py:reply", AgentSettings(), tmp_path)
    for module in ("mine_not_there", "mine_not_there.bot", "json.mine"):
        message = rf"there is no module '.*', neither in '{tmp_path}' nor.*{PAGE}"
        with pytest.raises(UsageError, match=message):
            load_python(f"python:{module}:reply", AgentSettings(), tmp_path)
