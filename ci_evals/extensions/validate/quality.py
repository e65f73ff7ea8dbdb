"""Weaknesses of a suite that can be run: the warnings of `validate` with `strict`, each with its position.

Every rule guesses what the author meant, so it must be right nearly always: people ignore one that cries
wolf.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import JsonValue

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.checks.evaluation import ClaimsBacked, Graded, Judged
from ci_evals.domain.checks.rubric import Dimension, Level, Rubric
from ci_evals.domain.checks.strict_check import ConversationLength, StrictCheck
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.errors import Problem
from ci_evals.domain.suite import PlannedTurn, Suite, Test
from ci_evals.domain.verdict import DimensionGrade, Grade
from ci_evals.planning.documents.document import Path, short
from ci_evals.planning.parse import LoadedSuite
from ci_evals.support.redaction import Redactor

_VERBS = (
    "acknowledges|admits|apologi[sz]es|asks|avoids|books|cancels|checks|collects|confirms|declines|directs"
    "|does|escalates|explains|follows|gives|hands|has|helps|informs|invites|is|keeps|maintains|makes|mentions"
    "|names|offers|points|promises|provides|quotes|refuses|refunds|remains|repeats|says|sends|shows|states"
    "|stays|suggests|takes|tells|thanks|transfers|treats|uses|verifies|waits|warns"
)
_TWO_THINGS = re.compile(
    rf";|[.!?]\s+(?-i:[A-Z])|\band (?:then |also |never |the (?:agent|assistant) |it )?(?:{_VERBS})\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_ABOUT_THE_TRACE = re.compile(
    r"\b(?:workflow|tool|integration|rule|parameter)\b.{0,60}"
    r"\b(?:called|used|executed|activated|triggered|fired|fires|extracted|runs)\b",
    re.IGNORECASE,
)
_AGENT_SHOULD = re.compile(
    r"\b(?:agent|assistant|bot) (?:should|must|shall|ought to|is expected to|has to|needs to)\b",
    re.IGNORECASE,
)
_NOT_HAPPY = re.compile(
    r"edge|error|negative|escalat|must-?not|adversar|secur|safety|refus|invalid|guardrail|abus|inject|denied"
    r"|declin|unhappy|fraud|complain|angry|\bnot\b|\bnever\b|n't\b|without|outside|wrong",
    re.IGNORECASE,
)
_ADD_A_STRICT_CHECK = (
    "decided only by a judge, which can be wrong; without a judge it stays undecided; "
    "add a check on the trace or the text (tool_used, param_equals, regex, …)"
)
_SHORTEST_ANSWER = 3
"""Characters from which an answer differs from ordinary words."""


def weaknesses(loaded: LoadedSuite) -> tuple[Problem, ...]:
    """Return everything that makes the suite weaker than it looks, in the order of its text."""
    # Redact first, since some texts are quoted in part.
    suite = Redactor(values=loaded.secrets).model(loaded.suite)
    problems = [loaded.document.problem(path, message) for path, message in _of_suite(suite)]
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column, problem.path)))


Weakness = tuple[Path, str]


def _of_suite(suite: Suite) -> Iterator[Weakness]:
    without_strict = [i for i, test in enumerate(suite.tests) if not _strict_checks(test)]
    if len(without_strict) == len(suite.tests):
        yield ("tests",), f"no test has a strict check: {_ADD_A_STRICT_CHECK}"
    if not any(test.tags for test in suite.tests):
        yield ("tests",), "no test has a tag: `tag=` and `thresholds=tag:NAME` reach none of them"
    if len(suite.tests) > 1 and all(_is_happy(test) and not _is_quiz(test) for test in suite.tests):
        yield (
            ("tests",),
            "all tests are happy paths: add what the agent must refuse, cannot do, or must hand over",
        )
    for i, test in enumerate(suite.tests):
        if i in without_strict and len(without_strict) < len(suite.tests):
            yield ("tests", i, "evaluations"), f"has no strict check: {_ADD_A_STRICT_CHECK}"
        if not test.tags and any(other.tags for other in suite.tests):
            yield ("tests", i), "has no tag: `tag=` never selects this test"
        for path, message in _of_test(suite, test):
            yield ("tests", i, *path), message


def _of_test(suite: Suite, test: Test) -> Iterator[Weakness]:
    yield from _given_away(test)
    if _reports_arguments(suite):
        yield from _names_only(suite, test)
    yield from _contradictions(test)
    written, most = test.planned_turns, len(suite.turns_of(test))
    ends_open = most > len(written) and not written[-1].auto
    length = ConversationLength(len(written), most, ends_open)
    seen: dict[tuple[Any, ...], int] = {}
    for j, evaluation in enumerate(test.evaluations):
        path = ("evaluations", j)
        first = seen.setdefault(_meaning(evaluation), j)
        if first != j:
            yield path, f"asks the same as evaluations[{first}] of this test"
        if evaluation.weight == 0:
            yield (*path, "weight"), "is 0: the criterion is shown but does not count"
        if isinstance(evaluation, Graded):
            yield from (((*path, *inner), message) for inner, message in _of_rubric(evaluation))
        elif isinstance(evaluation, Judged) and not isinstance(evaluation, ClaimsBacked):
            for message in filter(None, (_two_things(evaluation), _could_be_strict(evaluation))):
                yield (*path, "criterion"), message
        if isinstance(evaluation, StrictCheck):
            for key, message in evaluation.weak_spots(length):
                yield (path if key is None else (*path, key)), message


def _of_rubric(graded: Graded) -> Iterator[Weakness]:
    written: list[tuple[Path, tuple[Level, ...] | None]] = [(("rubric",), graded.rubric)]
    for i, dimension in enumerate(graded.dimensions or ()):
        if isinstance(dimension, Dimension):
            written.append((("dimensions", i, "rubric"), dimension.rubric))
            if dimension.weight == 0:
                yield ("dimensions", i, "weight"), "is 0: the dimension is shown but does not count"
    for path, levels in written:
        for k, level in enumerate(levels or ()):
            if level.description is None:
                yield (
                    (*path, k),
                    "has no description: the judge must guess how it differs from the next level",
                )
    whole = graded.whole_rubric
    for i, judged in enumerate(whole.dimensions if graded.dimensions else ()):
        if judged.description is None:
            name = short(judged.name)
            yield ("dimensions", i), f"has no description: what {name!r} means is the judge's guess"
    own = [levels for _, levels in written[1:] if levels]
    if graded.rubric and graded.dimensions and len(own) == len(graded.dimensions):
        yield ("rubric",), "is used by no dimension: each has its own levels"
    yield from _never_or_always(whole)


def _never_or_always(rubric: Rubric) -> Iterator[Weakness]:
    """Yield a threshold that all conversations pass, or none."""
    worst, best = _grade(rubric, -1), _grade(rubric, 0)
    if worst.passes():
        yield ("passAt",), f"is {rubric.pass_at:g}, which the worst levels come to: no conversation can fail"
    if not best.passes():
        message = f"is {rubric.pass_at:g}, and the best levels come to {best.score:g}"
        yield ("passAt",), f"{message}: no conversation can pass"


def _grade(rubric: Rubric, level: int) -> Grade:
    """Return the grade with the level of this index in every dimension."""
    grades = tuple(
        DimensionGrade(
            name=each.name, level="", score=each.levels[level].score, weight=each.weight, reason=""
        )
        for each in rubric.dimensions
    )
    return Grade.of(rubric.pass_at, grades)


def _contradictions(test: Test) -> Iterator[Weakness]:
    """Yield optimal workflows that a criterion forbids from the start."""
    forbidden: dict[str, int] = {}
    for j, check in _strict_checks(test):
        name = check.forbidden_tool()
        if name is not None:
            forbidden[name] = j
    for i, name in enumerate(test.optimal_tools or ()):
        if name in forbidden:
            yield ("optimalTools", i), f"names {name}, which evaluations[{forbidden[name]}] forbids"


def _reports_arguments(suite: Suite) -> bool:
    """Return whether the agent surely reports the arguments of its tool calls."""
    kind = AGENT_KINDS.get(suite.adapter)
    if suite.trace == "otlp":
        return True
    if kind and kind.reports_arguments is not None:
        return kind.reports_arguments
    if kind and "toolCalls" in kind.paths_in(suite.adapter_options or {}):
        return True
    return any(check.reads_arguments() for test in suite.tests for _, check in _strict_checks(test))


def _names_only(suite: Suite, test: Test) -> Iterator[Weakness]:
    """Yield tools that a test wants called, and nothing in it says with what."""
    checks = _strict_checks(test)
    if any(check.reads_values() for _, check in checks):
        return
    without = _without_parameters(suite)
    for j, check in checks:
        hint = check.arguments_hint()
        if hint is None:
            continue
        for name in check.tool_names():
            if name not in without:
                message = f"a call of {short(name)} passes whatever its arguments are: {hint}"
                yield ("evaluations", j, "toolName"), message
                return


def _without_parameters(suite: Suite) -> frozenset[str]:
    """Return the tools that take no arguments, as far as the request says which tools there are."""
    request = (suite.adapter_options or {}).get("request")
    tools = request.get("tools") if isinstance(request, dict) else None
    listed = tools if isinstance(tools, list) else []
    functions = [tool.get("function") for tool in listed if isinstance(tool, dict)]
    return frozenset(
        str(function.get("name"))
        for function in functions
        if isinstance(function, dict) and not _properties(function.get("parameters"))
    )


def _properties(schema: JsonValue) -> JsonValue:
    return schema.get("properties") if isinstance(schema, dict) else None


def _strict_checks(test: Test) -> list[tuple[int, StrictCheck]]:
    """Return the strict checks of a test, each with its index among all evaluations."""
    return [(j, check) for j, check in enumerate(test.evaluations) if isinstance(check, StrictCheck)]


def _is_happy(test: Test) -> bool:
    """Return whether nothing in the test suggests a refusal, an error, an escalation or ill will."""
    if any(check.is_unhappy for _, check in _strict_checks(test)):
        return False
    text = " ".join([test.name, *test.tags, *(evaluation.criterion for evaluation in test.evaluations)])
    return not _NOT_HAPPY.search(text)


def _is_quiz(test: Test) -> bool:
    """Return whether the test is a question with its answer: it has no happy path, and may name choices."""
    return any(check.is_quiz for _, check in _strict_checks(test))


def _meaning(evaluation: Criterion) -> tuple[Any, ...]:
    """Return all that decides the verdict; the words of a strict check, or of one of claims, do not."""
    fields = evaluation.model_dump(exclude={"weight", "category", "aui_logic"})
    if isinstance(evaluation, StrictCheck | ClaimsBacked):
        del fields["criterion"]
    else:
        fields["criterion"] = " ".join(evaluation.criterion.lower().split())
    return tuple((key, repr(value)) for key, value in fields.items())


def _two_things(evaluation: Judged) -> str | None:
    if match := _TWO_THINGS.search(evaluation.criterion):
        second = short(" ".join(evaluation.criterion[match.start() :].split()))
        return (
            f"asks two things at once ({second!r}): if only one is met, it can be judged either way; split it"
        )
    return None


def _could_be_strict(evaluation: Judged) -> str | None:
    if _CODE.search(evaluation.criterion) or _ABOUT_THE_TRACE.search(evaluation.criterion):
        return "asks the judge what the trace shows: a strict check decides it exactly, at no cost"
    return None


class _SecretAnswer(NamedTuple):
    """An answer that the user must not know: he could pass it on to the agent."""

    what: str
    text: str


def _given_away(test: Test) -> Iterator[Weakness]:
    """Yield guidelines and fixed messages with the answer that the agent is tested for."""
    if _AGENT_SHOULD.search(test.guidelines):
        hint = "put it into a criterion or a turn's expectation"
        yield ("guidelines",), f"say what the agent should do: the simulated user steers it there; {hint}"
    for answer in _answers(test):
        if _occurs_in(answer.text, test.guidelines):
            yield ("guidelines",), f"give away {answer.what} ({short(answer.text)!r}): the user could say it"
        for k, turn in enumerate(() if _is_quiz(test) else test.turns):
            if isinstance(turn, PlannedTurn) and _occurs_in(answer.text, turn.user):
                yield ("turns", k, "user"), f"gives away {answer.what} ({short(answer.text)!r})"


def _answers(test: Test) -> Iterator[_SecretAnswer]:
    data = repr(test.user_info)
    for j, check in _strict_checks(test):
        for text in check.answers():
            # The user may say his own data, which the agent is to repeat.
            if len(text.strip()) >= _SHORTEST_ANSWER and text not in data:
                yield _SecretAnswer(f"the answer that evaluations[{j}] looks for", text.strip())
        for code in check.codes():
            if re.search(r"[_-]", code):
                yield _SecretAnswer(f"the name that evaluations[{j}] looks for", code)


def _occurs_in(needle: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text, re.IGNORECASE) is not None
