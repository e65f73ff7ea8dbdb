"""The user's lines in a promptfoo test, and texts with their variables filled in."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ci_evals.extensions.importers.promptfoo.sources import FILE
from ci_evals.extensions.importers.promptfoo.values import templates_in
from ci_evals.support.json_text import JsonObject

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

    def fault(self, variables: JsonObject) -> str:
        """Return why the lines are not known, or cannot be said; empty if they can."""
        if not self.lines:
            names = ", ".join(map(repr, variables)) or "none"
            return (
                f"it is unknown which of its variables ({names}) the user says; name one of them 'question'"
            )
        for line in self.lines:
            if not line.strip():
                return "the user's message is empty"
            if any(mark in line for mark in ("{{", "{%")):
                return f"the user's message has a template that cannot be filled: {templates_in(line)}"
        return ""


def user_lines_of_case(prompts: Any, variables: JsonObject) -> UserLines:
    """The lines of a case; none if they are not known."""
    for name, value in variables.items():
        if isinstance(value, list) and (history := user_lines(value, variables)).lines:
            history.used = {name}
            return _with_question(history, variables)
    texts = [text for text in prompt_texts(prompts) if not text.startswith(FILE)]
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
        new = _shown(value)
        length += len(new)
        if length > MAX_CHARACTERS:
            raise OverlongError(
                f"a text has more than {MAX_CHARACTERS:,} characters once its variables are filled in"
            )
        return new

    return _VARIABLE.sub(value_of, text) if "{{" in text else text


def _shown(value: Any) -> str:
    """Return a value as templates show it: a list of plain values between commas, as JavaScript does."""
    match value:
        case str():
            return value
        case list() if not any(isinstance(item, dict) for item in value):
            return ",".join(map(_shown, value))
        case float() if value.is_integer():
            return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _user_variable(texts: list[str], variables: JsonObject) -> str | None:
    """The variable that is the user's line: a prompt of its own, one of a usual name, or the only one."""
    candidates = [name for name, value in _parts(variables) if isinstance(value, str | int | float)]
    alone = [found[1] for text in texts if (found := _VARIABLE.fullmatch(text.strip()))]
    named = {name for text in texts for name in _VARIABLE.findall(text)} & set(candidates)
    usual = [name for last in _USUAL_NAMES for name in named or candidates if name.rpartition(".")[2] == last]
    likely = [name for name in alone if name in candidates] + usual
    if not texts:
        likely += candidates
    return likely[0] if likely and (alone or usual or len(candidates) == 1) else None


def _parts(variables: JsonObject) -> Iterator[tuple[str, Any]]:
    """The variables, and the fields of those that are objects: `item.input`."""
    for name, value in variables.items():
        yield name, value
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", part) for key, part in value.items())


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
