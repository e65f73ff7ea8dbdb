"""The suite that a chat is about: that of the command line, with the one test that the agent is told of."""

from dataclasses import replace

from ci_evals.cli.files.suite_loading import agent_choice, load_suites
from ci_evals.cli.github.trust import FileTrust
from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import AUTO, Test
from ci_evals.extension_support.drafting.draft import ANSWERS
from ci_evals.extension_support.suite_writing import write
from ci_evals.extensions.chat.settings import ChatSettings, ChosenSuite
from ci_evals.planning.agent_choice import choose
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load

_NOTHING = {
    "name": "Chat",
    "guidelines": "A person talks to the agent.",
    "turns": [{"user": AUTO}],
    "evaluations": [ANSWERS],
}
_NO_SUITE = {"name": "Chat", "tests": [_NOTHING]}
_FILE = "chat.json"


def load_chat(settings: ChatSettings, trust: FileTrust) -> LoadedSuite:
    """Return the suite with the test that `--test` names, or with one that says nothing of the user.

    Raises:
        UsageError: there is no such suite or test, several are named, or the agent cannot be reached so.
    """
    chosen = ChosenSuite.of(settings)
    if settings.suite is None:
        if settings.test:
            raise UsageError("`test=`: names a test of a suite. Name the suite too.")
        choice = agent_choice(chosen, trust.github.context.environ)
        loaded = load(write(_NO_SUITE, _FILE), _FILE, Reading(plugins=choice.plugins))
        return choose(loaded, choice)
    suites = load_suites(chosen, trust)
    if settings.test is None:
        if len(suites) > 1:
            files = ", ".join(one.file for one in suites[:10])
            raise UsageError(f"{settings.suite}: stands for {len(suites)} suites. Name one: {files}.")
        return _with_test(suites[0], Test.model_validate(_NOTHING))
    found = [(one, test) for one in suites for test in one.suite.tests if test.name == settings.test]
    part = settings.test.casefold()
    found = found or [
        (one, test) for one in suites for test in one.suite.tests if part in test.name.casefold()
    ]
    if len(found) != 1:
        tests = [test for _, test in found] or [test for one in suites for test in one.suite.tests]
        names = ", ".join(repr(test.name) for test in tests[:20])
        problem = "is part of several names" if found else "is no test's name"
        raise UsageError(f"`test=`: {settings.test!r} {problem}. Tests: {names}.")
    return _with_test(*found[0])


def _with_test(loaded: LoadedSuite, test: Test) -> LoadedSuite:
    return replace(loaded, suite=loaded.suite.copy_with(tests=(test,)), test_lines=(1,))
