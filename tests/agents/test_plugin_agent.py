"""Adapters of other packages, each in a folder that looks to Python as if it were installed."""

import sys

import pytest

from ci_evals.agents import plugins
from ci_evals.agents.python.loading import load_plugin
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import UsageError


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package with one module and its entry points."""
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


async def test_plug_in_gets_all_fields_of_the_suite(installed):
    """In the suite's own words."""
    installed("acme-evals", "acme", FACTORY, acme="acme:create")
    settings = AgentSettings("a1", "key-123456", "https://a.example", "m", {"tone": "warm"}, debug=True)
    agent = load_plugin("acme", settings)
    session = await agent.open_session(AgentContract.played_test)
    reply = await agent.send_message(session, "Hello", timeout=5)
    await agent.close(session)
    assert reply.trace == {
        "agentId": "a1",
        "apiKey": "key-123456",
        "baseUrl": "https://a.example",
        "model": "m",
        "options": {"tone": "warm"},
        "debug": True,
    }


def test_only_the_one_that_is_named_is_loaded(installed):
    """Another one that is broken does no harm."""
    installed("acme-evals", "acme", FACTORY, acme="acme:create", other="acme_gone:create")
    assert {"acme", "other"} <= plugins.names()
    load_plugin("acme", AgentSettings())


RAISES = "def create(config): return config['token']"
COMPLAINS = "from ci_evals import UsageError\ndef create(config): raise UsageError('needs a model')"


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("import no_such", r"'acme:create' cannot be imported: ModuleNotFoundError: .* \(.*acme\.py:1\)"),
        ("", "'acme:create' cannot be imported: AttributeError"),
        ("create = 7", "'acme:create' is not a factory but of the type int"),
        (RAISES, r"its factory 'acme:create' raised KeyError: 'token' \(.*acme\.py:1, in create\)"),
        ("def create(): pass", "its factory 'acme:create' raised TypeError"),
        ("def create(config): pass", "is not an agent but of the type NoneType"),
        (COMPLAINS, "needs a model"),
    ],
)
def test_a_plug_in_at_fault_is_named_with_its_package(installed, text, output):
    """Its user did nothing wrong, and must know whom to ask."""
    installed("acme-evals", "acme", text, acme="acme:create")
    with pytest.raises(UsageError, match=rf"adapter 'acme' of the package 'acme-evals' 1\.2:? {output}"):
        load_plugin("acme", AgentSettings())


def test_two_packages_with_one_name_are_refused(installed):
    """With both names: which one is meant is not ours to guess."""
    installed("acme-evals", "acme", FACTORY, acme="acme:create")
    installed("other-evals", "acme_too", FACTORY, acme="acme_too:create")
    text = r"more than one package, the packages 'acme-evals' 1\.2 and 'other-evals' 1\.2"
    with pytest.raises(UsageError, match=text):
        load_plugin("acme", AgentSettings())


def test_a_built_in_name_is_no_name_for_a_plug_in(installed):
    """Neither wins silently."""
    plugins.check_built_in("http")
    installed("acme-evals", "acme", FACTORY, http="acme:create")
    with pytest.raises(UsageError, match=r"'http' is built in, and the package 'acme-evals' 1\.2 provides"):
        plugins.check_built_in("http")


def test_missing_plugin_is_reported():
    """As between two commands."""
    with pytest.raises(UsageError, match="adapter 'nowhere' is not installed"):
        load_plugin("nowhere", AgentSettings())
