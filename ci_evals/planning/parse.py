"""From a suite's text to a `Suite`, or to every problem in it with its place."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from ci_evals.domain.agents import BUILT_IN, is_program, secrets_of
from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.domain.evaluation import OF_A_RUBRIC
from ci_evals.domain.suite import Suite
from ci_evals.planning.adapter_options import complaint, option_problems
from ci_evals.planning.document import Document, short
from ci_evals.planning.interpolate import interpolate
from ci_evals.planning.reader import read
from ci_evals.planning.validation import faults
from ci_evals.support.redaction import Redactor
from ci_evals.support.secrets import in_addresses


@dataclass(frozen=True)
class Reading:
    """What the meaning of a suite's text depends on besides the text."""

    environ: Mapping[str, str] = field(default_factory=dict)
    plugins: frozenset[str] = frozenset()
    """Adapters that are installed beside the built-in ones."""
    replaced: frozenset[str] = frozenset()
    """Keys of a suite that its user names himself: their texts are not read."""
    may_lack: frozenset[str] = frozenset()
    """Keys of a suite whose variables may be unset, as where a pull request is given no secrets."""
    masked: bool = False
    """Whether secrets, and variables that are unset, read as `***`: as in a recording."""
    distrusted: str | None = None
    """Where suites may neither name endpoints nor read the environment (`in the event …`); None: they may."""


@dataclass(frozen=True)
class LoadedSuite:
    """A suite that can be run, and what must be known of its file."""

    suite: Suite
    file: str
    test_lines: tuple[int, ...]
    document: Document = field(repr=False)
    """Where everything stands."""
    secrets: frozenset[str]
    """Values that came from the environment."""
    warnings: tuple[str, ...]


def load(text: str, file: str, reading: Reading) -> LoadedSuite:
    """Reads one suite.

    Raises:
        SuiteError: with every problem at once.
    """
    document = read(text, file)
    refused = f"a suite may not read the environment {reading.distrusted}" if reading.distrusted else None
    filled = interpolate(
        document,
        reading.environ,
        refused_because=refused,
        replaced=reading.replaced,
        may_lack=reading.may_lack,
        masked=reading.masked,
    )
    problems = [*document.problems, *filled.problems]
    suite: Suite | None = None
    value = _without_comments(filled.value)
    literal = _without(value, filled.unresolved) if filled.unresolved else value
    redactor = Redactor(_keys_in(literal), filled.secrets)
    try:
        # Keys as they are written, not as fields are called: a `base_url` would get past the check below.
        suite = Suite.model_validate_json(json.dumps(value), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        problems += faults(document, value, error, redactor=redactor)
    problems += _across(document, value)
    if isinstance(value, dict):
        problems += _of_the_adapter(document, value, reading, redactor)
    if problems or suite is None:
        redacted = [replace(problem, message=redactor.text(problem.message)) for problem in problems]
        raise SuiteError(sorted(redacted, key=lambda p: (p.line, p.column, p.path)))
    return LoadedSuite(
        suite=suite,
        file=file,
        test_lines=tuple(document.values[("tests", i)][0] for i in range(len(suite.tests))),
        document=document,
        secrets=frozenset(filled.secrets),
        warnings=tuple(filled.warnings) + tuple(_unused_fields(suite, file)),
    )


def _without(value: Any, references: Collection[str]) -> Any:
    """The data without references to the environment that could not be replaced."""
    match value:
        case str():
            for reference in references:
                value = value.replace(reference, " ")
            return value.strip()
        case dict():
            return {key: _without(item, references) for key, item in value.items()}
        case list():
            return [_without(item, references) for item in value]
    return value


def _keys_in(value: Any) -> Iterator[str]:
    """The secrets that stand in a suite's own text, which a message may quote."""
    if isinstance(value, dict):
        key, address, options = (value.get(name) for name in ("apiKey", "baseUrl", "adapterOptions"))
        yield from (key, *key.split()) if isinstance(key, str) else ()
        yield from in_addresses(json.dumps(address))
        yield from secrets_of(options) if isinstance(options, dict) else ()


def _of_the_adapter(
    document: Document, value: dict[str, Any], reading: Reading, redactor: Redactor
) -> Iterator[Problem]:
    """What is wrong with how the agent is to be spoken to."""
    adapter, options = value.get("adapter", "aui"), value.get("adapterOptions")
    if reading.distrusted:
        for key, message in _NOT_IF_DISTRUSTED.items():
            if value.get(key) is not None and (key != "adapter" or _runs_code(str(adapter), reading)):
                yield document.problem((key,), message.format(where=reading.distrusted))
    if isinstance(adapter, str) and (said := complaint(adapter, reading.plugins)):
        yield document.problem(("adapter",), f"{short(redactor.text(adapter))!r} {said}")
    elif isinstance(adapter, str) and isinstance(options, dict):
        yield from option_problems(adapter, options, document, redactor, ("adapterOptions",))


def _runs_code(adapter: str, reading: Reading) -> bool:
    """Whether the adapter is code that is not ours, be it a plug-in that is installed beside us."""
    return is_program(adapter) or (adapter in reading.plugins and adapter not in BUILT_IN)


_NOT_IF_DISTRUSTED = {
    "baseUrl": "a suite may not name an endpoint {where}; use --base-url",
    "adapter": "a suite may not name a program to run {where}; use --adapter",
    "adapterOptions": "a suite may not say what an agent is sent {where}; use --adapter-options",
}


def _without_comments(value: Any) -> Any:
    """The data without `$schema` and `x-…` keys, which mean nothing to us, on the levels that are ours."""
    if not isinstance(value, dict):
        return value
    suite = _plain(value)
    suite |= {"tests": [_plain_test(test) for test in suite["tests"]]} if _is_list(suite.get("tests")) else {}
    return suite


def _plain_test(test: Any) -> Any:
    if not isinstance(test, dict):
        return test
    plain = _plain(test)
    for key in ("turns", "evaluations"):
        if _is_list(plain.get(key)):
            plain[key] = [_plain_item(item) for item in plain[key]]
    return plain


def _plain_item(value: Any) -> Any:
    """A turn or an evaluation; in a rubric its levels, its dimensions and their levels too."""
    if not isinstance(value, dict):
        return value
    plain = _plain(value)
    for key in OF_A_RUBRIC & plain.keys():
        if _is_list(plain[key]):
            plain[key] = [_plain_item(item) for item in plain[key]]
    return plain


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "$schema" and not key.startswith("x-")}


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _across(document: Document, value: Any) -> Iterator[Problem]:
    """Faults that lie between values: they are told even where single values are wrong too."""
    tests = value.get("tests") if isinstance(value, dict) else None
    names: dict[str, int] = {}
    for i, test in enumerate(tests if isinstance(tests, list) else []):
        if not isinstance(test, dict):
            continue
        name = test.get("name")
        if isinstance(name, str) and name in names:
            yield document.problem(
                ("tests", i, "name"), f"the name {name!r} is that of tests[{names[name]}] already"
            )
        elif isinstance(name, str):
            names[name] = i
        evaluations = test.get("evaluations")
        if isinstance(evaluations, list) and evaluations:
            weights = [item.get("weight", 1) if isinstance(item, dict) else 1 for item in evaluations]
            if all(type(weight) in {int, float} and weight == 0 for weight in weights):
                yield document.problem(
                    ("tests", i, "evaluations"), "all weights are 0: nothing could be scored"
                )


def _unused_fields(suite: Suite, file: str) -> Iterator[str]:
    if suite.adapter != "aui":
        return
    if suite.model:
        yield f"{file}: model: has no field on the AUI wire and is not sent"
    if any(test.system_prompt for test in suite.tests):
        yield f"{file}: systemPrompt: has no field on the AUI wire and is not sent"
