"""`python:module:attribute`: what it finds, and what it says where it finds nothing."""

import sys

import pytest

from ci_evals.agents.python.loading import load_python
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import UsageError
from ci_evals.domain.transcript import Reply

PAGE = "see docs/python-agent.md"


@pytest.fixture(autouse=True)
def modules_of_its_own(monkeypatch):
    """What a test puts on the path, and what it imports, is gone after it."""
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
    session = await agent.open_session(AgentContract.played_test)
    try:
        return await agent.send_message(session, "Hello", timeout=5)
    finally:
        await agent.close(session)


async def first_reply(agent) -> str:
    return (await reply_of(agent)).agent


def a_class(init=""):
    """A class of agents that say what they hear and what they hold."""
    methods = """
    def open_session(self):
        return None
    def send_message(self, session, text):
        return f"{text} {self.__dict__}"
"""
    return f"class Agent:\n    {init}\n{methods}"


OPTIONS = "Hello {'options': {'tone': 'warm'}}"


async def test_a_functions_call_of_an_escalation_tool_hands_over(tmp_path):
    """What it says itself of a hand-over counts too."""
    text = "def reply(message): return {'text': 'Hi', 'toolCalls': [{'name': message}]}"
    agent = load(tmp_path, text, options={"escalationTools": ["Hello"]})
    assert (await reply_of(agent)).hand_over is True
    agent = load(tmp_path, text, module="mine2", options={"escalationTools": ["to_person"]})
    assert (await reply_of(agent)).hand_over is False
    silent = "def reply(message): return {'text': 'Hi', 'escalated': False}"
    agent = load(tmp_path, silent, module="mine3", options={"escalationTools": ["to_person"]})
    assert (await reply_of(agent)).hand_over is None


@pytest.mark.parametrize(
    ("text", "attribute", "answer"),
    [
        ("def reply(message): return message", "reply", "Hello"),
        ("async def reply(message, session): return session.options['tone']", "reply", "warm"),
        (a_class(), "Agent", "Hello {}"),
        (a_class("def __init__(self, told): self.options = told"), "Agent", OPTIONS),
        (a_class("def __init__(self, options=None): self.options = options"), "Agent", OPTIONS),
        (a_class("def __init__(self, size=3): self.size = size"), "Agent", "Hello {'size': 3}"),
        (f"{a_class()}\nagent = Agent()", "agent", "Hello {}"),
        ("class Agent:\n    def __call__(self, message): return message", "Agent", "Hello"),
        ("class Shop:\n    @staticmethod\n    def reply(message): return message", "Shop.reply", "Hello"),
    ],
)
async def test_what_may_be_named(tmp_path, text, attribute, answer):
    """A function, a class, an object, or what is inside of one."""
    assert await first_reply(load(tmp_path, text, attribute, options={"tone": "warm"})) == answer


async def test_the_folder_is_searched_first_and_packages_too(tmp_path):
    """As `python -m` does; what the module imports beside it is found as well."""
    (tmp_path / "mine_helper.py").write_text("WORD = 'helped'")
    agent = load(
        tmp_path, "import mine_helper\ndef reply(message): return mine_helper.WORD", module="minepkg.bot"
    )
    assert await first_reply(agent) == "helped"
    assert sys.path[0] == str(tmp_path)


HERE = r"\(.*mine\.py"
BROKEN = f"{a_class('def __init__(self): raise OSError(3)')}\nreply = Agent"
DEMANDING = f"{a_class('def __init__(self, a, b): pass')}\nreply = Agent"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def replay(message): return 1", rf"'mine' {HERE}\) has no 'reply'; did you mean 'replay'\?"),
        ("import no_such", rf"No module named 'no_such' {HERE}:1\); install 'no_such' next to ci-evals"),
        ("\n1/0", rf"'mine' cannot be imported: ZeroDivisionError: division by zero {HERE}:2\)"),
        ("def reply(:", rf"cannot be imported: SyntaxError: .*{HERE}:1\)"),
        ("import sys; sys.exit('no')", "cannot be imported: SystemExit: no"),
        ("reply = 'Hello'", "python:mine:reply is not an agent but of the type str"),
        ("def reply(): pass", r"python:mine:reply: reply takes \(\), but is called as reply\(message\) or"),
        (BROKEN, rf"Agent could not be made: OSError: 3 {HERE}:2, in __init__\)"),
        (DEMANDING, "Agent could not be made: TypeError"),
        ("class reply: pass", "is not an agent but of the type reply"),
    ],
)
def test_unusable_code_is_reported_before_anything_runs(tmp_path, text, message):
    """With the place in the user's own code."""
    with pytest.raises(UsageError, match=message):
        load(tmp_path, text)


async def test_a_module_that_runs_its_agent_when_it_is_imported(tmp_path):
    """As quick starts do, by `run_sync` at their end."""
    text = "import asyncio\nloop = asyncio.get_event_loop()\nloop.run_until_complete(loop.create_future())"
    with pytest.raises(UsageError, match=r":3\); put what runs the agent below `if __name__ == '__main__':`"):
        load(tmp_path, text)


def test_the_name_of_a_file_is_not_that_of_its_module(tmp_path):
    """The slip that is made most often."""
    (tmp_path / "mine.py").write_text("def reply(message): return 'Hi'")
    with pytest.raises(UsageError, match=r"a module is named without '.py': 'python:mine:…'"):
        load_python("python:mine.py:reply", AgentSettings(), tmp_path)


@pytest.mark.parametrize("module", ["mine_not_there", "mine_not_there.bot", "json.mine"])
def test_a_module_that_is_not_there(tmp_path, module):
    """It is looked for in the folder, and among what is installed."""
    with pytest.raises(UsageError, match=rf"there is no module '.*', neither in '{tmp_path}' nor.*{PAGE}"):
        load_python(f"python:{module}:reply", AgentSettings(), tmp_path)
