"""From a suite's text to a `Suite`, or to every problem in it with its place."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from pydantic import ValidationError

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.agents import DEFAULT_ADAPTER, is_program, secrets_of
from ci_evals.domain.checks.evaluation import RUBRIC_KEYS, STRICT_KINDS
from ci_evals.domain.checks.strict.json_replies import JsonSchema
from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.score_scale import as_share, is_share
from ci_evals.domain.suite import Suite
from ci_evals.extension_registry import suite_bases
from ci_evals.planning.adapter_options import complaint, option_problems
from ci_evals.planning.canary_references import canary_problems
from ci_evals.planning.documents.document import Document, Path, short
from ci_evals.planning.documents.interpolate import Reading, interpolate
from ci_evals.planning.documents.reader import read
from ci_evals.planning.suite_keys import AddedKeys, ExpandedSuite
from ci_evals.planning.validation import problems_in
from ci_evals.planning.worlds import secrets_in_worlds, world_problems
from ci_evals.support import json_schema
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor
from ci_evals.support.secrets import in_addresses


@dataclass(frozen=True)
class LoadedSuite:
    """A suite that can be run, with facts about its file."""

    suite: Suite
    file: str
    test_lines: tuple[int, ...]
    document: Document = field(repr=False)
    """The position of everything."""
    secrets: frozenset[str]
    """Values that came from the environment."""
    warnings: tuple[Problem, ...]
    written: Mapping[Path, str] = field(default_factory=dict)
    """The strings with such values as they are written, with the names of the variables, by their places."""
    start_folder: str | None = None
    """The folder in which `start` runs; None for the current one."""
    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The traits of simulated users, by the names of tests."""


class BrokenSuiteError(SuiteError):
    """A suite that cannot be read, with every problem, and the part of it that says which agent it is for."""

    def __init__(self, problems: Sequence[Problem], document: Document, agent: Suite | None) -> None:
        super().__init__(in_order(problems))
        self.document, self.agent = document, agent


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems of a file in the order of their places."""
    return sorted(problems, key=lambda p: (p.line, p.column, p.path))


def load(text: str, file: str, reading: Reading) -> LoadedSuite:
    """Read one suite.

    Raises:
        BrokenSuiteError: with every problem at once.
    """
    document = read(text, file)
    if isinstance(document.value, dict) and "extends" in document.value:
        for base in suite_bases():
            document = base.extended(document)
    filled = interpolate(document, reading)
    problems = [*document.problems, *filled.problems]
    suite: Suite | None = None
    value = _without_comments(filled.value)
    problems += _read_schemas(document, value, reading)
    literal = _without(value, filled.unresolved) if filled.unresolved else value
    redactor = Redactor(_secrets_in(literal), filled.secrets)
    added = AddedKeys(document, value, redactor)
    try:
        # Only keys as they are written: a field's name, such as `base_url`, would get past the check below.
        suite = Suite.model_validate_json(json.dumps(value), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        problems += problems_in(document, value, error, redactor=redactor)
    problems += _cross_problems(document, value)
    problems += world_problems(document, value, reading.distrusted)
    problems += canary_problems(document, value)
    if isinstance(value, dict):
        problems += _adapter_problems(document, value, reading, redactor)
    if suite and reading.today:
        problems += _ended_quarantines(document, suite, reading.today)
    expanded = added.expand(suite, reading) if suite and not added.problems else None
    problems += added.problems
    if problems or expanded is None:
        redacted = [replace(problem, message=redactor.text(problem.message)) for problem in problems]
        agent = suite or (_agent_part(value) if isinstance(value, dict) and value else None)
        raise BrokenSuiteError(redacted, document, agent)
    suite, places = expanded.suite, expanded.places
    document = replace(document, test_places=places)
    doubts = (*_unused_fields(suite, document), *_floors_like_shares(suite, document))
    return LoadedSuite(
        suite=suite,
        file=file,
        test_lines=tuple(document.values[("tests", place)][0] for place in places),
        document=document,
        secrets=frozenset(filled.secrets),
        warnings=tuple(dict.fromkeys([*document.warnings, *filled.warnings, *doubts, *expanded.warnings])),
        written=_at_tests(filled.written, expanded),
        start_folder=reading.folder,
        users=expanded.users,
    )


def _at_tests(written: Mapping[Path, str], expanded: ExpandedSuite) -> dict[Path, str]:
    """Return the texts of the suite by their places among the tests that are played."""
    if not written:
        return {}
    moved = {path: text for path, text in written.items() if path[:1] != ("tests",)}
    for index, place in enumerate(expanded.places):
        for path, text in written.items():
            if path[:2] == ("tests", place):
                moved["tests", index, *path[2:]] = text
        for path, text in expanded.written.get(expanded.suite.tests[index].name, {}).items():
            moved["tests", index, *path] = text
    return moved


_AGENT_KEYS = frozenset(
    {"agentId", "apiKey", "adapter", "adapterOptions", "baseUrl", "start", "waitFor", "model"}
)
_ONE_TEST = {"name": "-", "guidelines": "-", "turns": [{"user": "-"}], "evaluations": [{"criterion": "-"}]}


def _agent_part(value: JsonObject) -> Suite | None:
    """Return a suite with the keys that say which agent it is for, without those that are wrong.

    None if the adapter is: nobody knows what it would need.
    """
    keys = {key: item for key, item in value.items() if key in _AGENT_KEYS}
    for _ in range(2):
        try:
            return Suite.model_validate(
                {"name": "-", "tests": [_ONE_TEST], **keys}, by_alias=True, by_name=False
            )
        except ValidationError as error:
            wrong = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
            if "adapter" in wrong:
                return None
            keys = {key: item for key, item in keys.items() if key not in wrong}
    return None


def _without(value: Any, references: Collection[str]) -> Any:
    """Return the data without references to the environment that could not be replaced."""
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


def _secrets_in(value: Any) -> Iterator[str]:
    """Yield the secrets in a suite's own text, which a message may quote."""
    if isinstance(value, dict):
        key, options = value.get("apiKey"), value.get("adapterOptions")
        yield from (key, *key.split()) if isinstance(key, str) else ()
        yield from in_addresses([value.get("baseUrl"), value.get("waitFor")])
        yield from secrets_of(options) if isinstance(options, dict) else ()
        yield from secrets_in_worlds(value)


def _adapter_problems(
    document: Document, value: JsonObject, reading: Reading, redactor: Redactor
) -> Iterator[Problem]:
    adapter, options = value.get("adapter", DEFAULT_ADAPTER), value.get("adapterOptions")
    if reading.distrusted:
        for key, message in _NOT_IF_DISTRUSTED.items():
            if value.get(key) is not None and (key != "adapter" or _runs_code(str(adapter), reading)):
                yield document.problem((key,), message.format(where=reading.distrusted))
        for check, path in _strict_checks(value):
            code_key = STRICT_KINDS[check["strict"]].code_key
            if code_key is not None:
                message = f"a suite may not name a function to run {reading.distrusted}"
                yield document.problem((*path, code_key), message)
    if isinstance(adapter, str) and (fault := complaint(adapter, reading.plugins)):
        yield document.problem(("adapter",), f"{short(redactor.text(adapter))!r} {fault}")
    elif isinstance(adapter, str) and isinstance(options, dict):
        yield from option_problems(adapter, options, document, redactor, ("adapterOptions",))


def _strict_checks(value: Any) -> Iterator[tuple[JsonObject, Path]]:
    """Yield each strict check of a known kind with its path."""
    tests = value.get("tests") if isinstance(value, dict) else None
    for i, test in enumerate(tests if isinstance(tests, list) else ()):
        evaluations = test.get("evaluations") if isinstance(test, dict) else None
        for j, evaluation in enumerate(evaluations if isinstance(evaluations, list) else ()):
            kind = evaluation.get("strict") if isinstance(evaluation, dict) else None
            if isinstance(kind, str) and kind in STRICT_KINDS:
                yield evaluation, ("tests", i, "evaluations", j)


def _read_schemas(document: Document, value: Any, reading: Reading) -> Iterator[Problem]:
    """Put the content of schema files instead of their paths, so that digests include it."""
    for check, path in _strict_checks(value):
        name = check.get("schema")
        if check["strict"] != JsonSchema.kind() or not isinstance(name, str) or not name.strip():
            continue
        try:
            check["schema"] = _schema(name, reading)
        except UsageError as error:
            yield document.problem((*path, "schema"), f"{short(name)!r} {error}")


def _schema(name: str, reading: Reading) -> JsonObject:
    if reading.read_beside is None:
        raise UsageError("is a path, but this suite was not read from a file; write the schema inline")
    text = reading.read_beside(name)
    try:
        schema = read(text, name).value
    except SuiteError as error:
        (problem, *_) = error.problems
        raise UsageError(f"cannot be read: {problem.message} (line {problem.line})") from None
    if not isinstance(schema, dict):
        raise UsageError("is not a JSON Schema: it is not an object")
    if reason := json_schema.fault(schema):
        raise UsageError(f"is not a JSON Schema: {reason}")
    return schema


def _runs_code(adapter: str, reading: Reading) -> bool:
    """Return whether the adapter is foreign code, installed plug-ins included."""
    return is_program(adapter) or (adapter in reading.plugins and adapter not in AGENT_KINDS)


_NOT_IF_DISTRUSTED = {
    "baseUrl": "a suite may not name an endpoint {where}; use `base_url=`",
    "adapter": "a suite may not name a program to run {where}; use `adapter=`",
    "start": "a suite may not name a program to run {where}; use `start=`",
    "waitFor": "a suite may not name an endpoint {where}; use `wait_for=`",
    "adapterOptions": "a suite may not set what an agent is sent {where}; use `adapter_options=`",
}


_LISTS = frozenset({"tests", "turns", "evaluations", "setup", "teardown"}) | RUBRIC_KEYS
_OBJECTS = frozenset({"http", "sql", "file", "quarantine", "when"})


def _without_comments(value: Any) -> Any:
    """Return the data without `$schema` and `x-…` keys, on all levels that this format defines."""
    if not isinstance(value, dict):
        return value
    plain = {key: item for key, item in value.items() if key != "$schema" and not key.startswith("x-")}
    for key in _LISTS & plain.keys():
        if isinstance(plain[key], list):
            plain[key] = [_without_comments(item) for item in plain[key]]
    if isinstance(probes := plain.get("probes"), dict):
        plain["probes"] = {name: _without_comments(probe) for name, probe in probes.items()}
    return plain | {key: _without_comments(plain[key]) for key in _OBJECTS & plain.keys()}


def _cross_problems(document: Document, value: Any) -> Iterator[Problem]:
    """Yield problems between values, even if single values are wrong too."""
    tests = value.get("tests") if isinstance(value, dict) else None
    indices: dict[str, int] = {}
    for i, test in enumerate(tests if isinstance(tests, list) else []):
        if not isinstance(test, dict):
            continue
        name = test.get("name")
        if isinstance(name, str) and indices.setdefault(name, i) != i:
            message = f"the name {name!r} is already used by tests[{indices[name]}]"
            yield document.problem(("tests", i, "name"), message)
        evaluations = test.get("evaluations")
        if isinstance(evaluations, list) and evaluations:
            weights = [item.get("weight", 1) if isinstance(item, dict) else 1 for item in evaluations]
            if all(type(weight) in {int, float} and weight == 0 for weight in weights):
                message = "all weights are 0, so nothing can be scored"
                yield document.problem(("tests", i, "evaluations"), message)


def _ended_quarantines(document: Document, suite: Suite, today: date) -> Iterator[Problem]:
    for i, test in enumerate(suite.tests):
        if test.quarantine and test.quarantine.until < today:
            message = (
                f"the quarantine of {test.name!r} ended on {test.quarantine.until}. Fix the test and remove "
                "its quarantine, or set a later day"
            )
            yield document.problem(("tests", i, "quarantine", "until"), message)


def _floors_like_shares(suite: Suite, document: Document) -> Iterator[Problem]:
    floors: list[tuple[Path, float | None]] = [(("minScore",), suite.min_score)]
    floors += [(("tests", index, "minScore"), test.min_score) for index, test in enumerate(suite.tests)]
    for path, floor in floors:
        if floor is not None and is_share(floor):
            yield document.problem(path, f"{floor:g} {as_share(floor)}")


def _unused_fields(suite: Suite, document: Document) -> Iterator[Problem]:
    kind = AGENT_KINDS.get(suite.adapter)
    unsent = kind.unsent if kind else {}
    if suite.model and "model" in unsent:
        yield document.problem(("model",), unsent["model"])
    prompts = [index for index, test in enumerate(suite.tests) if test.system_prompt]
    if "systemPrompt" in unsent and prompts:
        yield document.problem(("tests", prompts[0], "systemPrompt"), unsent["systemPrompt"])
