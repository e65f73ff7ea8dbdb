"""Setup, probes and teardown in a suite's text: their faults, each at its place, and their secrets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ci_evals.domain.agents import secrets_of
from ci_evals.domain.canaries import PREFIX
from ci_evals.domain.errors import Problem
from ci_evals.domain.world import AGENT_STATE, NAMES, SESSION_ID
from ci_evals.planning.canary_references import canaries_of
from ci_evals.planning.documents.document import Document, Path, short
from ci_evals.planning.validation import nearest
from ci_evals.support import placeholders
from ci_evals.support.secrets import in_addresses

_IN_STATEMENT = "which could change the statement: write :name there, and its value in 'parameters'"

SECTIONS = ("setup", "probes", "teardown")


class _Step(NamedTuple):
    section: str
    path: Path
    value: dict[str, object]
    tests: Sequence[dict[str, object]]
    """The tests that it is done for."""


def world_problems(document: Document, value: Any, distrusted: str | None) -> Iterator[Problem]:
    """Yield unknown `{{names}}` and probes; where suites are `distrusted` (`in the event …`), all steps."""
    if not isinstance(value, dict):
        return
    for path in _worlds(value) if distrusted else ():
        message = f"a suite may not reach databases, services, programs or files {distrusted}"
        yield document.problem(path, f"{message}; run it in an event that is trusted")
    for step in _steps(value):
        for path, text in _texts(step.value, step.path):
            for name in dict.fromkeys(placeholders.names(text)):
                if complaint := _complaint(name, step, path):
                    yield document.problem(path, f"holds {{{{{name}}}}}, {complaint}")
    yield from _unknown_probes(document, value)


def secrets_in_worlds(suite: Mapping[str, Any]) -> Iterator[str]:
    """Yield the secrets in a suite's steps: passwords of addresses, and what is named like a secret."""
    for step in _steps(suite):
        yield from in_addresses(step.value)
        for kind in ("http", "sql"):
            if isinstance(options := step.value.get(kind), dict):
                yield from secrets_of(options)


def _tests(value: Mapping[str, Any]) -> list[tuple[int, dict[str, object]]]:
    tests = value.get("tests")
    listed = tests if isinstance(tests, list | tuple) else ()
    return [(index, test) for index, test in enumerate(listed) if isinstance(test, dict)]


def _worlds(value: dict[str, object]) -> Iterator[Path]:
    yield from ((section,) for section in SECTIONS if value.get(section))
    for index, test in _tests(value):
        yield from (("tests", index, section) for section in SECTIONS if test.get(section))


def _steps(value: Mapping[str, Any]) -> Iterator[_Step]:
    tests = _tests(value)
    yield from _steps_of(value, (), [test for _, test in tests])
    for index, test in tests:
        yield from _steps_of(test, ("tests", index), [test])


def _steps_of(owner: Mapping[str, Any], path: Path, tests: Sequence[dict[str, object]]) -> Iterator[_Step]:
    for section in SECTIONS:
        match owner.get(section):
            case dict() as probes:
                steps: list[tuple[Any, Any]] = [*probes.items()]
            case list() | tuple() as listed:
                steps = [*enumerate(listed)]
            case _:
                continue
        for key, step in steps:
            if isinstance(step, dict):
                yield _Step(section, (*path, section, key), step, tests)


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _texts(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))


def _complaint(name: str, step: _Step, path: Path) -> str | None:
    """Return a clause about a name that may not stand there; None if it may."""
    if name.startswith(PREFIX):
        return _without_canary(name.removeprefix(PREFIX), step, path)
    if name not in NAMES and not name.startswith("userInfo."):
        return f"which is unknown; available: {', '.join(NAMES)}"
    if path[-2:] == ("sql", "statement"):
        return _IN_STATEMENT
    if name == SESSION_ID and step.section == "setup":
        return "which is known only once the agent has opened a session; use it in probes and teardown"
    for test in step.tests if name.startswith("userInfo") else ():
        user_info = test.get("userInfo", {})
        if isinstance(user_info, dict) and not _has(user_info, name.split(".")[1:]):
            who = short(str(test.get("name", "")))
            return f"which the userInfo of {who!r} lacks"
    return None


def _without_canary(name: str, step: _Step, path: Path) -> str | None:
    """Return a clause about a canary that one of the step's tests lacks."""
    if path[-2:] == ("sql", "statement"):
        return _IN_STATEMENT
    for test in step.tests:
        if name not in canaries_of(test):
            return f"which is not among the canaries of {short(str(test.get('name', '')))!r}"
    return None


def _has(value: Any, steps: Sequence[str]) -> bool:
    if not steps:
        return True
    match value:
        case dict():
            return steps[0] in value and _has(value[steps[0]], steps[1:])
        case list():
            index = steps[0]
            inside = index.isascii() and index.isdigit() and int(index) < len(value)
            return inside and _has(value[int(index)], steps[1:])
    return False


def _unknown_probes(document: Document, value: dict[str, object]) -> Iterator[Problem]:
    """Yield `state` checks of a probe that neither the suite nor the test has."""
    for i, test in _tests(value):
        known = [AGENT_STATE, *(name for owner in (value, test) for name in _probes(owner))]
        evaluations = test.get("evaluations")
        for j, evaluation in enumerate(evaluations if isinstance(evaluations, list) else ()):
            if not isinstance(evaluation, dict) or evaluation.get("strict") != "state":
                continue
            probe = evaluation.get("probe")
            if isinstance(probe, str) and probe.strip() and probe not in known:
                hint = (
                    nearest(probe, known) if known[1:] else "; add it to 'probes' of the suite or of the test"
                )
                path = ("tests", i, "evaluations", j, "probe")
                yield document.problem(path, f"{short(probe)!r} is not a probe of this test{hint}")


def _probes(owner: dict[str, object]) -> Sequence[str]:
    probes = owner.get("probes")
    return [*probes] if isinstance(probes, dict) else ()
