"""What the user says in a test of promptfoo, where its prompts and variables tell."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ci_evals.adapters.importers.imported import Data

_PLACE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_HISTORY = "_conversation"
_SAID_BY_USER = ("question", "message", "input", "query", "user_input", "user_message", "prompt", "text")
"""What people call the variable that holds the user's line, where a test has several."""

MOST_CHARACTERS = 200_000
"""Of one text with its variables filled in: a variable may stand in it a thousand times."""


class OverlongError(Exception):
    """A text that its variables make too long."""


@dataclass
class Lines:
    """The user's lines of one case, and what else stands between them."""

    said: list[str] = field(default_factory=list)
    system: str = ""
    replies: list[str] = field(default_factory=list)
    """What the assistant is to have said already."""
    used: set[str] = field(default_factory=set)
    """Variables that are in it."""
    says_prompt: bool = False
    """Whether the prompt itself is what the user says, so that nothing of it is lost."""

    @property
    def known(self) -> bool:
        """Whether there are lines, and no template is left in them."""
        return bool(self.said) and not any(mark in line for line in self.said for mark in ("{{", "{%"))


def lines_of_case(prompts: Any, variables: Data) -> Lines:
    """The lines of a case, or none where they cannot be told."""
    found = _lines_of_case(prompts, variables)
    return found if found.known else Lines()


def _lines_of_case(prompts: Any, variables: Data) -> Lines:
    for name, value in variables.items():
        if isinstance(value, list) and (found := lines_of(value, variables)).said:
            found.used = {name}
            return _with_question(found, variables)
    texts = [text for text in _texts(prompts) if not text.startswith("file://")]
    if len(texts) == 1 and (messages := _messages(texts[0])) is not None:
        found = lines_of(messages, variables)
        found.used = set(_PLACE.findall(texts[0])) & set(variables)
        found.says_prompt = True
        return found
    spoken = _spoken(texts, variables)
    if spoken is not None:
        return Lines(said=[filled(str(variables[spoken]), variables).strip()], used={spoken})
    if len(texts) == 1:
        used = set(_PLACE.findall(texts[0]))
        return Lines(said=[filled(texts[0], variables).strip()], used=used, says_prompt=True)
    return Lines()


def _with_question(lines: Lines, variables: Data) -> Lines:
    """A list of messages is often what was said before, and the line itself another variable."""
    texts = [name for name in _SAID_BY_USER if isinstance(variables.get(name), str)]
    if texts and not lines.used & set(texts):
        lines.said.append(filled(variables[texts[0]], variables).strip())
        lines.used.add(texts[0])
    return lines


def prompt_texts(prompts: Any) -> tuple[str, ...]:
    """The prompts in the file, or what names those in other files."""
    return tuple(_texts(prompts))


def variables_in(texts: Any) -> frozenset[str]:
    """Names of the variables that stand in a text, or in the texts of a list or an object."""
    match texts:
        case str():
            return frozenset(name.split(".")[0] for name in _PLACE.findall(texts))
        case dict():
            return frozenset().union(*map(variables_in, texts.values()))
        case list() | tuple():
            return frozenset().union(*map(variables_in, texts))
    return frozenset()


def is_whole(prompt: str) -> bool:
    """Whether a prompt is a single variable, so that nothing but its value is sent."""
    return _PLACE.fullmatch(prompt.strip()) is not None


def remembers(prompts: Any) -> bool:
    """Whether a prompt in the file tells the model what was said before, so that cases are steps."""
    return any(_HISTORY in text for text in _texts(prompts))


def lines_of(messages: list[Any], variables: Data) -> Lines:
    """The lines in a list of messages, `{role, content}` or `{user: text}`; none if it is another list."""
    lines = Lines()
    for message in messages:
        role, content = _role(message)
        text = filled(content, variables).strip()
        if not text:
            return Lines()
        match role:
            case "user":
                lines.said.append(text)
            case "assistant":
                lines.replies.append(text)
            case "system" | "developer":
                lines.system = text
            case _:
                return Lines()
    return lines


def _role(message: Any) -> tuple[str, str]:
    """Who says what in a message; empty where it is none."""
    match message:
        case {"role": str(role), "content": str(content)}:
            return role, content
        case dict() if len(message) == 1 and all(isinstance(text, str) for text in message.values()):
            return next(iter(message.items()))
    return "", ""


def filled(value: Any, variables: Data) -> Any:
    """`value` with `{{names}}` of variables replaced in its texts; what else is a template stays.

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


def _filled(text: str, variables: Data) -> str:
    length = len(text)

    def value_of(found: re.Match[str]) -> str:
        nonlocal length
        value: Any = variables
        for step in found[1].split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return found[0]
        new = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        length += len(new)
        if length > MOST_CHARACTERS:
            raise OverlongError(
                f"a text has more than {MOST_CHARACTERS:,} characters once its variables are filled in"
            )
        return new

    return _PLACE.sub(value_of, text) if "{{" in text else text


def _spoken(texts: list[str], variables: Data) -> str | None:
    """The variable that is the user's line: a prompt of its own, one of a usual name, or the only one."""
    spoken = [name for name, value in variables.items() if isinstance(value, str | int | float)]
    alone = [found[1] for text in texts if (found := _PLACE.fullmatch(text.strip()))]
    named = {name for text in texts for name in _PLACE.findall(text)} & set(spoken)
    usual = [name for name in _SAID_BY_USER if name in (named or spoken)]
    likely = [*(name for name in alone if name in spoken), *usual, *(spoken if not texts else [])]
    return likely[0] if likely and (alone or usual or len(spoken) == 1) else None


def _texts(prompts: Any) -> Iterator[str]:
    for item in prompts if isinstance(prompts, list) else [prompts]:
        match item:
            case str():
                yield item
            case {"raw": str(text)}:
                yield text
            case {"id": str(text)}:
                yield text


def _messages(prompt: str) -> list[Any] | None:
    """A prompt that is a JSON list of messages."""
    if not prompt.lstrip().startswith("["):
        return None
    try:
        found = json.loads(prompt)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None
