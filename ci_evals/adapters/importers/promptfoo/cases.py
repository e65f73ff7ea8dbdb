"""The test cases of a promptfoo configuration, and what the user says in them."""

import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ci_evals.adapters.importers.imported import MOST_TESTS, JsonObject
from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.document import Document, Path

_TEMPLATES = "#/assertionTemplates/"
_MERGED = ("vars", "options", "metadata")


_Located = tuple[Path, JsonObject]
_Merged = tuple[Path, JsonObject, list[Any]]
"""A case with inherited fields, and all its assertions."""


@dataclass(frozen=True)
class PromptfooCase:
    """One test case, with the fields of `defaultTest` and its scenario."""

    path: Path
    fields: JsonObject
    """All its fields."""
    asserts: list[tuple[Path, Any]]
    """Its assertions and their positions; sets that require all of theirs are resolved."""

    def part(self, key: str) -> JsonObject:
        """One of its fields that are objects: `vars`, `metadata`, `options`."""
        return _object(self.fields.get(key))

    @property
    def variables(self) -> JsonObject:
        """Its variables, one value each, except those in other files."""
        return {name: value for name, value in self.part("vars").items() if not _is_file(value)}

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Its variables whose values are in other files."""
        return tuple(name for name, value in self.part("vars").items() if _is_file(value))

    @property
    def description(self) -> str:
        """Its author's name for it."""
        return str(self.fields.get("description") or "").strip()

    @property
    def provider(self) -> str:
        """The provider of this case alone; empty for that of the configuration."""
        given = self.fields.get("provider")
        return str(_object(given).get("id") or "") if isinstance(given, dict) else str(given or "")

    @property
    def provider_config(self) -> JsonObject:
        """The configuration of that provider."""
        return _object(self.part("provider").get("config"))


def cases(document: Document, notes: list[str]) -> Iterator[PromptfooCase]:
    """Every case in the file; those in other files are noted in `notes`."""
    config = document.value
    count = 0
    for path, fields, asserts in _merged(document, notes):
        for values in _unrolled(fields, document, path):
            count += 1
            if count > MOST_TESTS:
                raise SuiteError([document.problem(path, f"more than {MOST_TESTS:,} tests; split the file")])
            yield PromptfooCase(path, fields | {"vars": values}, list(_resolved(asserts, config)))


def _merged(document: Document, notes: list[str]) -> Iterator[_Merged]:
    config = document.value
    default = config.get("defaultTest")
    if default is not None and not isinstance(default, dict):
        notes.append(str(document.problem(("defaultTest",), "is another file, which is not read")))
    base = ("defaultTest",), _object(default)
    for path, test in _listed(document, ("tests",), config.get("tests"), notes):
        yield _together(base, (path, test))
    for position, scenario in _listed(document, ("scenarios",), config.get("scenarios"), notes):
        if left := sorted(str(key) for key in set(scenario) - {"config", "tests"}):
            notes.append(str(document.problem(position, f"no counterpart for its {', '.join(left)}")))
        shared = list(_listed(document, (*position, "config"), scenario.get("config"), notes))
        for part, (path, test) in itertools.product(
            shared or [(position, {})],
            list(_listed(document, (*position, "tests"), scenario.get("tests"), notes)) or [(position, {})],
        ):
            yield _together(base, part, (path, test))


def _listed(document: Document, path: Path, given: Any, notes: list[str]) -> Iterator[_Located]:
    for i, item in enumerate(given if isinstance(given, list) else [] if given is None else [given]):
        here = (*path, i) if isinstance(given, list) else path
        if isinstance(item, str) or (isinstance(item, dict) and isinstance(item.get("path"), str)):
            notes.append(str(document.problem(here, "is another file, which is not read")))
        elif not isinstance(item, dict):
            raise SuiteError([document.problem(here, "must be an object")])
        else:
            yield here, item


def _together(*parts: _Located) -> _Merged:
    """Fields of the later parts come before those of the earlier; assertions are those of all."""
    fields: JsonObject = {}
    asserts: list[Any] = []
    for path, part in parts:
        given = part.get("assert")
        without = _object(parts[-1][1].get("options")).get("disableDefaultAsserts") is True
        if isinstance(given, list) and not (without and path == ("defaultTest",)):
            asserts += [((*path, "assert", i), item) for i, item in enumerate(given)]
        joined = {key: _object(fields.get(key)) | _object(part.get(key)) for key in _MERGED}
        fields = fields | part | {key: item for key, item in joined.items() if item}
    return parts[-1][0], fields, asserts


def _unrolled(fields: JsonObject, document: Document, path: Path) -> Iterator[JsonObject]:
    """Every combination of the values of variables that are lists of texts."""
    given = _object(fields.get("vars"))
    if _object(fields.get("options")).get("disableVarExpansion") is True:
        return iter([given])
    choices = [
        item if isinstance(item, list) and item and all(isinstance(one, str) for one in item) else [item]
        for item in given.values()
    ]
    if math.prod(len(values) for values in choices) > MOST_TESTS:
        message = f"its variables have more than {MOST_TESTS:,} combinations"
        raise SuiteError([document.problem(path, message)])
    return (dict(zip(given, values, strict=True)) for values in itertools.product(*choices))


def _resolved(
    asserts: list[tuple[Path, Any]], config: JsonObject, depth: int = 0
) -> Iterator[tuple[Path, Any]]:
    templates = _object(config.get("assertionTemplates"))
    for path, given in asserts:
        item = given
        reference = item.get("$ref") if isinstance(item, dict) else None
        if isinstance(reference, str) and reference.startswith(_TEMPLATES):
            item = templates.get(reference.removeprefix(_TEMPLATES), item)
        inner = item.get("assert") if isinstance(item, dict) and item.get("type") == "assert-set" else None
        if isinstance(inner, list) and set(item) <= {"type", "assert"} and depth == 0:
            inside = [((*path, "assert", i), one) for i, one in enumerate(inner)]
            yield from _resolved(inside, config, depth + 1)
        else:
            yield path, item


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("file://")


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_HISTORY = "_conversation"
_USUAL_NAMES = ("question", "message", "input", "query", "user_input", "user_message", "prompt", "text")
"""Common names of the variable that holds the user's line, if a test has several."""

MAX_CHARACTERS = 200_000
"""The limit of a text with its variables filled in: a variable may occur in it a thousand times."""


class OverlongError(Exception):
    """A text that its variables make too long."""


@dataclass
class UserLines:
    """The user's lines of one case, and the messages between them."""

    lines: list[str] = field(default_factory=list)
    system: str = ""
    replies: list[str] = field(default_factory=list)
    """The assistant's messages."""
    used: set[str] = field(default_factory=set)
    """Variables that are used in them."""
    says_prompt: bool = False
    """True if the prompt itself is the user's line, so that nothing of it is lost."""

    @property
    def known(self) -> bool:
        """Return whether there are lines, and no template is left in them."""
        return bool(self.lines) and not any(mark in line for line in self.lines for mark in ("{{", "{%"))


def user_lines_of_case(prompts: Any, variables: JsonObject) -> UserLines:
    """The lines of a case, or none if they are not known."""
    lines = _said(prompts, variables)
    return lines if lines.known else UserLines()


def _said(prompts: Any, variables: JsonObject) -> UserLines:
    for name, value in variables.items():
        if isinstance(value, list) and (history := user_lines(value, variables)).lines:
            history.used = {name}
            return _with_question(history, variables)
    texts = [text for text in prompt_texts(prompts) if not text.startswith("file://")]
    only = texts[0] if len(texts) == 1 else None
    used = set(_VARIABLE.findall(only or ""))
    if only and (messages := _messages(only)) is not None:
        lines = user_lines(messages, variables)
        lines.used, lines.says_prompt = used & set(variables), True
        return lines
    variable = _user_variable(texts, variables)
    if variable is not None:
        return UserLines(lines=[filled(f"{{{{{variable}}}}}", variables).strip()], used={variable})
    if only:
        return UserLines(lines=[filled(only, variables).strip()], used=used, says_prompt=True)
    return UserLines()


def _with_question(history: UserLines, variables: JsonObject) -> UserLines:
    """Add the line itself: a list of messages is often only the history."""
    texts = [name for name in _USUAL_NAMES if isinstance(variables.get(name), str)]
    if texts and not history.used & set(texts):
        history.lines.append(filled(variables[texts[0]], variables).strip())
        history.used.add(texts[0])
    return history


def variables_in(texts: Any) -> frozenset[str]:
    """Names of the variables that stand in a text, or in the texts of a list or an object."""
    match texts:
        case str():
            return frozenset(name.split(".")[0] for name in _VARIABLE.findall(texts))
        case dict():
            return frozenset().union(*map(variables_in, texts.values()))
        case list() | tuple():
            return frozenset().union(*map(variables_in, texts))
    return frozenset()


def is_whole(prompt: str) -> bool:
    """Return whether a prompt is a single variable, so that nothing but its value is sent."""
    return _VARIABLE.fullmatch(prompt.strip()) is not None


def remembers(prompts: Any) -> bool:
    """Return whether a prompt in the file includes the history, so that cases are steps."""
    return any(_HISTORY in text for text in prompt_texts(prompts))


def user_lines(messages: list[Any], variables: JsonObject) -> UserLines:
    """The lines in a list of messages, `{role, content}` or `{user: text}`; none if it is another list."""
    result = UserLines()
    for message in messages:
        role, content = _role(message)
        text = filled(content, variables).strip()
        if not text:
            return UserLines()
        match role:
            case "user":
                result.lines.append(text)
            case "assistant":
                result.replies.append(text)
            case "system" | "developer":
                result.system = text
            case _:
                return UserLines()
    return result


def _role(message: Any) -> tuple[str, str]:
    match message:
        case {"role": str(role), "content": str(content)}:
            return role, content
        case dict() if len(message) == 1 and all(isinstance(text, str) for text in message.values()):
            return next(iter(message.items()))
    return "", ""


def filled(value: Any, variables: JsonObject) -> Any:
    """`value` with `{{names}}` of variables replaced in its texts; other templates stay.

    Raises:
        OverlongError: a text grows without end.
    """
    match value:
        case str():
            return _filled(_filled(value, variables), variables)
        case dict():
            return {key: filled(item, variables) for key, item in value.items()}
        case list():
            return [filled(item, variables) for item in value]
    return value


def _filled(text: str, variables: JsonObject) -> str:
    length = len(text)

    def value_of(match: re.Match[str]) -> str:
        nonlocal length
        value: Any = variables
        for step in match[1].split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return match[0]
        new = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        length += len(new)
        if length > MAX_CHARACTERS:
            raise OverlongError(
                f"a text has more than {MAX_CHARACTERS:,} characters once its variables are filled in"
            )
        return new

    return _VARIABLE.sub(value_of, text) if "{{" in text else text


def _user_variable(texts: list[str], variables: JsonObject) -> str | None:
    """The variable that is the user's line: a prompt of its own, one of a usual name, or the only one."""
    candidates = [name for name, value in _parts(variables) if isinstance(value, str | int | float)]
    alone = [found[1] for text in texts if (found := _VARIABLE.fullmatch(text.strip()))]
    named = {name for text in texts for name in _VARIABLE.findall(text)} & set(candidates)
    usual = [name for last in _USUAL_NAMES for name in named or candidates if name.rpartition(".")[2] == last]
    likely = [
        *(name for name in alone if name in candidates),
        *usual,
        *(candidates if not texts else []),
    ]
    return likely[0] if likely and (alone or usual or len(candidates) == 1) else None


def _parts(variables: JsonObject) -> Iterator[tuple[str, Any]]:
    """The variables, and the fields of those that are objects: `item.input`."""
    for name, value in variables.items():
        yield name, value
        yield from ((f"{name}.{key}", part) for key, part in _object(value).items())


def prompt_texts(prompts: Any) -> list[str]:
    """The prompts in the file, or what names those in other files."""
    texts = []
    for item in prompts if isinstance(prompts, list) else [prompts]:
        match item:
            case str(text) | {"raw": str(text)} | {"id": str(text)}:
                texts.append(text)
    return texts


def _messages(prompt: str) -> list[Any] | None:
    if not prompt.lstrip().startswith("["):
        return None
    try:
        found = json.loads(prompt)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None
