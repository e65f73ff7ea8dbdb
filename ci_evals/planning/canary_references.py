"""References to canaries in a suite: each stands for a value, and what is checked reaches the agent."""

from collections.abc import Iterator, Mapping
from typing import Any

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.agents import DEFAULT_ADAPTER
from ci_evals.domain.canaries import PREFIX, referred
from ci_evals.domain.errors import Problem
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.validation import nearest
from ci_evals.support import placeholders

_USER_INFO = "userInfo"
_PLACES = ("systemPrompt", "turns", "setup")
"""The keys of a test, besides its user's data, by which a value can reach the agent."""
_SECTIONS = ("setup", "probes", "teardown")
"""The keys whose references are checked with the world."""


def canary_problems(document: Document, value: Any) -> Iterator[Problem]:
    """Yield references that stand for nothing, and checks of values that the agent never gets.

    Both would let a check pass whatever the agent says.
    """
    tests = value.get("tests") if isinstance(value, dict) else None
    for index, test in enumerate(tests if isinstance(tests, list) else ()):
        if isinstance(test, dict):
            yield from _unknown(document, test, ("tests", index))
            yield from _unplanted(document, value, test, ("tests", index))


def _unknown(document: Document, test: Mapping[str, Any], at: Path) -> Iterator[Problem]:
    kinds = canaries_of(test)
    for key, item in test.items():
        if key in _SECTIONS or key == "canaries":
            continue
        for path, text in texts(item, (*at, key)):
            for name in placeholders.names(text):
                if not name.casefold().startswith(("canary", "canari")):
                    continue
                known = name.removeprefix(PREFIX) in kinds and name.startswith(PREFIX)
                if not known:
                    yield document.problem(path, f"holds {{{{{name}}}}}, {_hint(name, kinds)}")


def _hint(name: str, kinds: Mapping[str, Any]) -> str:
    known = [f"{PREFIX}{kind}" for kind in kinds]
    if not known:
        return "but the test has no canary of this name; add it to 'canaries'"
    return f"but the test has no canary of this name{nearest(name, known)}"


def _unplanted(
    document: Document, suite: Mapping[str, Any], test: Mapping[str, Any], at: Path
) -> Iterator[Problem]:
    kinds = canaries_of(test)
    evaluations = test.get("evaluations")
    checked = {*referred(evaluations)} & kinds.keys() if isinstance(evaluations, list) else set()
    planted = {*referred([test.get(key) for key in _PLACES]), *referred(suite.get("setup"))}
    in_data = {*referred(test.get(_USER_INFO))}
    for name in sorted(checked - planted):
        if name not in in_data:
            message = (
                f"the canary {name!r} is checked, but nothing gives it to the agent: write "
                f"{{{{{PREFIX}{name}}}}} in userInfo, a line, systemPrompt or a step of setup"
            )
            yield document.problem((*at, "canaries", name), message)
        elif not _is_sent(suite):
            message = (
                f"the canary {name!r} is checked, but the agent never gets it: this adapter sends userInfo "
                "only where its options hold {{userInfo}}"
            )
            yield document.problem((*at, _USER_INFO), message)


def _is_sent(suite: Mapping[str, Any]) -> bool:
    """Return whether the agent gets its user's data, as far as the suite says how it is called."""
    kind = AGENT_KINDS.get(str(suite.get("adapter", DEFAULT_ADAPTER)))
    options = suite.get("adapterOptions")
    if kind is None or kind.sends_user_info or options is None:
        return True
    return any(name.split(".")[0] == _USER_INFO for name in placeholders.names(options))


def canaries_of(test: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the kinds of a test's canaries by their names."""
    kinds = test.get("canaries")
    return kinds if isinstance(kinds, dict) else {}


def texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the texts in JSON with their paths, keys of objects too."""
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield (*path, key), str(key)
                yield from texts(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from texts(item, (*path, index))
