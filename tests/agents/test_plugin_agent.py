"""Adapters of other packages, each in a folder that Python takes for an installation."""

import sys

import pytest
from agent_sessions import replies_of

from ci_evals.agents import plugins
from ci_evals.agents.python.loading import load_plugin
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import UsageError


@pytest.fixture
def installed(tmp_path, monkeypatch):
    before = set(sys.modules)

    def install(package, module, text, **points):
        folder = tmp_path / package
        info = folder / f"{package.replace('-', '_')}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        lines = [f"{name} = {target}" for name, target in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[ci_evals.adapters]", *lines]))
        (folder / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(folder)

    yield install
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]


FACTORY = """
def create(config):
    def reply(message):
        return {"text": message, "trace": config}
    return reply
"""


async def test_plugin_factory_receives_all_agent_fields_of_suite(installed):
    """Another plugin that is broken does no harm."""
    installed("acme-evals", "acme", FACTORY, acme="acme:create", other="acme_gone:create")
    assert {"acme", "other"} <= plugins.names()
    settings = AgentSettings("a1", "key-123456", "https://a.example", "m", {"tone": "warm"}, debug=True)
    agent = load_plugin("acme", settings)
    (reply,) = await replies_of(agent, "Hello")
    fields = {"agentId": "a1", "apiKey": "key-123456", "baseUrl": "https://a.example", "model": "m"}
    assert reply.trace == fields | {"options": {"tone": "warm"}, "debug": True}


RAISES = "def create(config): return config['token']"
REJECTS = "from ci_evals import UsageError\ndef create(config): raise UsageError('needs a model')"


@pytest.mark.parametrize(("text", "output"), [
    ("import no_such", r"'acme:create' cannot be imported: ModuleNotFoundError: .* \(.*acme\.py:1\)"),
    ("", "'acme:create' cannot be imported: AttributeError"),
    ("create = 7", "'acme:create' is not a factory but of the type int"),
    (RAISES, r"its factory 'acme:create' raised KeyError: 'token' \(.*acme\.py:1, in create\)"),
    ("def create(): pass", "its factory 'acme:create' raised TypeError"),
    ("def create(config): pass", "is not an agent but of the type NoneType"),
    (REJECTS, "needs a model"),
])  # fmt: skip
def test_invalid_plugin_is_reported_with_its_package(installed, text, output):
    """Its user did nothing wrong, and must know whom to ask."""
    installed("acme-evals", "acme", text, acme="acme:create")
    with pytest.raises(UsageError, match=rf"adapter 'acme' of the package 'acme-evals' 1\.2:? {output}"):
        load_plugin("acme", AgentSettings())


def test_ambiguous_or_missing_plugin_is_rejected(installed):
    installed("acme-evals", "acme", FACTORY, acme="acme:create", http="acme:create")
    installed("other-evals", "acme_too", FACTORY, acme="acme_too:create")
    text = r"more than one package, the packages 'acme-evals' 1\.2 and 'other-evals' 1\.2"
    with pytest.raises(UsageError, match=text):
        load_plugin("acme", AgentSettings())
    with pytest.raises(UsageError, match=r"'http' is built in, and the package 'acme-evals' 1\.2 provides"):
        plugins.check_built_in("http")
    plugins.check_built_in("python")
    with pytest.raises(UsageError, match="adapter 'nowhere' is not installed"):
        load_plugin("nowhere", AgentSettings())
