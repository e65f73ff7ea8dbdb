"""`extends: safety:NAME` in a suite: the tests of a pack, filled with what the suite says under `with`."""

import difflib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from ci_evals.extensions.safety.expansion import filled
from ci_evals.planning.documents.document import Document, short
from ci_evals.planning.validation import problems_in
from ci_evals.support.redaction import Redactor

PREFIX = "safety:"
_PACKS = Path(__file__).parent / "packs"

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
_MOST = 20
"""Names of a kind that a suite may give: each is a check in every test."""


_SHORTEST = 6


def _is_name(name: str) -> str:
    if not re.fullmatch(r"[^{}\s]+", name):
        raise ValueError("is empty or holds blanks or braces")
    return name


def _is_field(name: str) -> str:
    if "." in name:
        raise ValueError("is a field within another; name one of userInfo itself")
    return _is_name(name)


def _is_value(text: str) -> str:
    if len(text) < _SHORTEST:
        raise ValueError(f"has fewer than {_SHORTEST} characters, so replies could have it by chance")
    return text


Name = Annotated[str, AfterValidator(_is_name)]
"""A tool: no blanks and no braces, which references have."""
FieldName = Annotated[str, AfterValidator(_is_field)]
"""A field of `userInfo` itself: none within another."""
Value = Annotated[str, AfterValidator(_is_value)]


class With(BaseModel):
    """The agent's own names, under `with`."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=False)

    secret_fields: list[FieldName] = Field(
        default=[],
        max_length=_MOST,
        description="Fields of `userInfo` that the agent gets and must not tell.",
    )
    tools_that_may_get_it: list[Name] = Field(
        default=[], max_length=_MOST, description="Tools that may get values of these fields."
    )
    other_person: Text | None = Field(
        default=None, description="Somebody else in your test data, as a user would say it."
    )
    other_data: list[Value] = Field(
        default=[], max_length=_MOST, description="Values of that person which the agent must not tell."
    )
    forbidden_tools: list[Name] = Field(
        default=[], max_length=_MOST, description="Tools that no such user may cause to be called."
    )
    task: Text | None = Field(
        default=None, description="What these tools do, as in `please TASK`: `refund order 7 twice`."
    )
    confirmed_tools: list[Name] = Field(
        default=[], max_length=_MOST, description="Tools that are only called after the user said yes."
    )
    request: Text | None = Field(default=None, description="What those do, as in `I ask you to REQUEST`.")
    may_escalate: bool = Field(
        default=False,
        description="Whether an agent passes that hands over to a person before the last line of an attack.",
    )
    user_info: dict[str, JsonValue] = Field(
        default={}, description="Data of the user that every test has, such as the id of a test account."
    )


class SUITE_KEYS(BaseModel):  # noqa: N801  # as the part has it
    """The keys that a suite has for a pack."""

    extends: str = Field(
        description="A pack of tests that are played after those of the suite: `safety:data`."
    )
    with_: With = Field(alias="with", description="The agent's own names, for the pack.")


_GOES_WITH = {"forbiddenTools": "task", "confirmedTools": "request", "otherPerson": "otherData"}


def extended(document: Document) -> Document:
    """Return the suite's document with the tests of the pack that it extends after its own.

    Problems stand where the suite names the pack. A document that extends something else stays as it is.
    """
    value = document.value
    name = value.get("extends")
    if not (isinstance(name, str) and name.startswith(PREFIX)):
        return document
    rest = {key: item for key, item in value.items() if key not in ("extends", "with")}
    known = packs()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        document.problems.append(
            document.problem(("extends",), f"{short(name)!r} is no suite to extend; {hint}")
        )
        document.value = rest
        return document
    given = _given(document, value.get("with", {}))
    tests = [*_tests(document, name, given)] if given is not None else []
    if given is not None and not tests and not document.problems:
        document.problems.append(document.problem(("with",), _nothing(name)))
    own = rest.get("tests", [])
    if isinstance(own, list):
        document.locate(document)
        place = document.values.get(("extends",), (1, 1))
        for number in range(len(own), len(own) + len(tests)):
            document.values["tests", number] = place
        rest["tests"] = [*own, *tests]
    document.value = rest
    return document


@cache
def packs() -> tuple[str, ...]:
    """Return the names of the packs."""
    return tuple(f"{PREFIX}{path.stem}" for path in sorted(_PACKS.glob("*.yaml")))


def suites() -> dict[str, str]:
    """Return what each pack is about, by its name."""
    return {name: _read(name)["about"] for name in packs()}


def _pack(name: str) -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = _read(name)["tests"]
    return tests


def _read(name: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  # most suites extend nothing

    text = (_PACKS / f"{name.removeprefix(PREFIX)}.yaml").read_text("utf-8")
    pack: dict[str, Any] = yaml.safe_load(text)
    return pack


def _given(document: Document, written: Any) -> dict[str, Any] | None:
    try:
        given = With.model_validate(written)
    except ValidationError as error:
        faults = problems_in(document, written, error, redactor=Redactor(), root=With, under=("with",))
        document.problems.extend(faults)
        return None
    values = given.model_dump(by_alias=True)
    for first, second in _GOES_WITH.items():
        for key, other in ((first, second), (second, first)):
            if values[key] and not values[other]:
                document.problems.append(document.problem(("with", key), f"needs {other!r} too"))
                return None
    return values


def _tests(document: Document, name: str, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tests that the suite gives enough for, as a suite has them. Warn of those left out."""
    for test in _pack(name):
        missing = [need for need in test.pop("needs") if not given[need]]
        if missing:
            message = f"{test['name']!r} is not played: set {' and '.join(map(repr, missing))} under 'with'"
            document.warnings.append(document.problem(("extends",), message))
            continue
        taken = {*given["userInfo"], *test.get("userInfo", {})}.intersection(given["secretFields"])
        if taken:
            message = f"{min(taken)!r} is a field of userInfo already; give the secret one another name"
            document.problems.append(document.problem(("with", "secretFields"), message))
            return
        made = filled(test, given)
        made["userInfo"] = given["userInfo"] | made.get("userInfo", {})
        made["maxTurns"] = len(made["turns"])
        made["tags"] = ["safety"]
        made["critical"] = True
        made["mayEscalate"] = given["mayEscalate"]
        yield made


def _nothing(name: str) -> str:
    needs = sorted({need for test in _pack(name) for need in test["needs"]})
    return f"{name!r} has no test for what is given here; set {' or '.join(map(repr, needs))}"
