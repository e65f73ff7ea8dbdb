"""What makes a suite weak though it can be run: warnings of `validate --strict`, each with its place.

Every rule is a guess about what the author meant, so it must be right nearly always: one that cries wolf is
switched off in the head of whoever reads it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ci_evals.domain.errors import Problem
from ci_evals.domain.evaluation import (
    AnswerMatches,
    Contains,
    Criterion,
    Graded,
    Judged,
    NotContains,
    NotRegex,
    ToolNotUsed,
)
from ci_evals.domain.rubric import Dimension, Level, Rubric
from ci_evals.domain.suite import Suite, Test
from ci_evals.domain.verdict import DimensionGrade, Grade
from ci_evals.planning.document import Path, short
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
_OF_THE_TRACE = re.compile(
    r"\b(?:workflow|tool|integration|rule|parameter)\b.{0,60}"
    r"\b(?:called|used|executed|activated|triggered|fired|fires|extracted|runs)\b",
    re.IGNORECASE,
)
_WHAT_THE_AGENT_SHOULD_DO = re.compile(
    r"\b(?:agent|assistant|bot) (?:should|must|shall|ought to|is expected to|has to|needs to)\b",
    re.IGNORECASE,
)
_NOT_HAPPY = re.compile(
    r"edge|error|negative|escalat|must-?not|adversar|secur|safety|refus|invalid|guardrail|abus|inject|denied"
    r"|declin|unhappy|fraud|complain|angry|\bnot\b|\bnever\b|n't\b|without|outside|wrong",
    re.IGNORECASE,
)
_FORBIDS = frozenset(
    {
        "escalated",
        "escalated_due_to_error",
        "tool_not_used",
        "rule_not_triggered",
        "param_not_exists",
        "not_contains",
        "not_regex",
    }
)
_ADD_A_STRICT_ONE = (
    "a judge alone decides, who can err, and nobody where there is none; "
    "add what the trace or the text can show (tool_used, param_equals, regex, …)"
)
_LEAST_TELLING = 3
"""Characters that an answer needs to be told from ordinary words."""


def weaknesses(loaded: LoadedSuite) -> tuple[Problem, ...]:
    """Everything that makes the suite weaker than it looks, in the order of its text."""
    # Secrets go first, since some texts are quoted in part.
    suite = Redactor(values=loaded.secrets).model(loaded.suite)
    found = [loaded.document.problem(path, message) for path, message in _of_suite(suite)]
    return tuple(sorted(found, key=lambda problem: (problem.line, problem.column, problem.path)))


Weakness = tuple[Path, str]


def _of_suite(suite: Suite) -> Iterator[Weakness]:
    without_strict = [i for i, test in enumerate(suite.tests) if not _strict(test)]
    if len(without_strict) == len(suite.tests):
        yield ("tests",), f"no test has a strict check: {_ADD_A_STRICT_ONE}"
    if not any(test.tags for test in suite.tests):
        yield ("tests",), "no test has a tag: --tag and --thresholds tag:NAME reach none of them"
    if len(suite.tests) > 1 and all(_is_happy(test) and not _is_quiz(test) for test in suite.tests):
        yield (
            ("tests",),
            "all tests are happy paths: add what the agent must refuse, cannot do, or must hand over",
        )
    for i, test in enumerate(suite.tests):
        if i in without_strict and len(without_strict) < len(suite.tests):
            yield ("tests", i, "evaluations"), f"has no strict check: {_ADD_A_STRICT_ONE}"
        if not test.tags and any(other.tags for other in suite.tests):
            yield ("tests", i), "has no tag: --tag never selects this test"
        for path, message in _of_test(suite, test):
            yield ("tests", i, *path), message


def _of_test(suite: Suite, test: Test) -> Iterator[Weakness]:
    yield from _given_away(test)
    yield from _held_both_ways(test)
    seen: dict[tuple[Any, ...], int] = {}
    for j, evaluation in enumerate(test.evaluations):
        place = ("evaluations", j)
        same = seen.setdefault(_meaning(evaluation), j)
        if same != j:
            yield place, f"asks the same as evaluations[{same}] of this test"
        if evaluation.weight == 0:
            yield (*place, "weight"), "is 0: the criterion is shown but counts for nothing"
        if isinstance(evaluation, Graded):
            yield from (((*place, *path), message) for path, message in _of_rubric(evaluation))
        elif isinstance(evaluation, Judged):
            for message in filter(None, (_two_things(evaluation), _could_be_strict(evaluation))):
                yield (*place, "criterion"), message
        if isinstance(evaluation, ToolNotUsed) and evaluation.before_turn == 1:
            yield (*place, "beforeTurn"), "is 1, before which there is no turn: no conversation can fail"
        talks_on = len(suite.turns_of(test)) > 1
        if isinstance(evaluation, NotContains | NotRegex) and evaluation.turn == "last" and talks_on:
            message = (
                f"{evaluation.strict} looks at the last reply alone, and passes whatever was said before"
            )
            yield place, f'{message}; write "turn": "any"'


def _of_rubric(graded: Graded) -> Iterator[Weakness]:
    written: list[tuple[Path, tuple[Level, ...] | None]] = [(("rubric",), graded.rubric)]
    for i, dimension in enumerate(graded.dimensions or ()):
        if isinstance(dimension, Dimension):
            written.append((("dimensions", i, "rubric"), dimension.rubric))
            if dimension.weight == 0:
                yield ("dimensions", i, "weight"), "is 0: the dimension is shown but counts for nothing"
    for path, levels in written:
        for k, level in enumerate(levels or ()):
            if level.description is None:
                yield (*path, k), "has no description: what tells it from the next level is the judge's guess"
    whole = graded.whole_rubric
    for i, one in enumerate(whole.dimensions):
        if graded.dimensions and one.description is None:
            yield (
                ("dimensions", i),
                f"has no description: what {short(one.name)!r} means is the judge's guess",
            )
    own = [levels for _, levels in written[1:] if levels]
    if graded.rubric and graded.dimensions and len(own) == len(graded.dimensions):
        yield ("rubric",), "is used by no dimension: each has levels of its own"
    yield from _never_or_always(whole)


def _never_or_always(rubric: Rubric) -> Iterator[Weakness]:
    """A threshold that tells no conversation from another."""
    worst, best = (
        Grade.of(
            rubric.pass_at,
            tuple(
                DimensionGrade(
                    name=one.name, level="", score=one.levels[place].score, weight=one.weight, reason=""
                )
                for one in rubric.dimensions
            ),
        )
        for place in (-1, 0)
    )
    if worst.passes():
        yield ("passAt",), f"is {rubric.pass_at:g}, which the worst levels come to: no conversation can fail"
    if not best.passes():
        yield (
            ("passAt",),
            f"is {rubric.pass_at:g}, and the best levels come to {best.score:g}: no conversation can pass",
        )


def _held_both_ways(test: Test) -> Iterator[Weakness]:
    """The shortest right conversation cannot run a workflow that a criterion forbids from the start."""
    forbidden = {
        evaluation.tool_name: j
        for j, evaluation in enumerate(test.evaluations)
        if isinstance(evaluation, ToolNotUsed) and evaluation.before_turn is None
    }
    for place, name in enumerate(test.optimal_tools or ()):
        if name in forbidden:
            yield (
                ("optimalTools", place),
                f"names {name}, which evaluations[{forbidden[name]}] forbids",
            )


def _strict(test: Test) -> bool:
    return any(not isinstance(evaluation, Judged) for evaluation in test.evaluations)


def _is_happy(test: Test) -> bool:
    """Whether nothing about the test tells of a refusal, an error, an escalation or ill will."""
    kinds = {getattr(evaluation, "strict", None) for evaluation in test.evaluations}
    told = " ".join([test.name, *test.tags, *(evaluation.criterion for evaluation in test.evaluations)])
    return not kinds & _FORBIDS and not _NOT_HAPPY.search(told)


def _is_quiz(test: Test) -> bool:
    """Whether the test is a question with its answer: such have no happy path, and may name their choices."""
    return any(isinstance(evaluation, AnswerMatches) for evaluation in test.evaluations)


def _meaning(evaluation: Criterion) -> tuple[Any, ...]:
    """All that decides the verdict: for a strict check not its words."""
    fields = evaluation.model_dump(exclude={"weight", "category", "aui_logic"})
    if not isinstance(evaluation, Judged):
        del fields["criterion"]
    else:
        fields["criterion"] = " ".join(evaluation.criterion.lower().split())
    return tuple((key, repr(value)) for key, value in fields.items())


def _two_things(evaluation: Judged) -> str | None:
    if found := _TWO_THINGS.search(evaluation.criterion):
        where = short(" ".join(evaluation.criterion[found.start() :].split()))
        return f"asks two things at once ({where!r}): a half fulfilled one can be judged either way; split it"
    return None


def _could_be_strict(evaluation: Judged) -> str | None:
    if _CODE.search(evaluation.criterion) or _OF_THE_TRACE.search(evaluation.criterion):
        return "asks the judge for what the trace shows: a strict check decides it for nothing and for sure"
    return None


@dataclass(frozen=True)
class _Answer:
    """What the user must not be given: he could hand it to the agent."""

    what: str
    text: str


def _given_away(test: Test) -> Iterator[Weakness]:
    """Guidelines and fixed lines from which the agent could take the answer that it is tested for."""
    if _WHAT_THE_AGENT_SHOULD_DO.search(test.guidelines):
        hint = "put it into a criterion or a turn's expectation"
        yield ("guidelines",), f"tell what the agent should do: the simulated user plays towards it; {hint}"
    for answer in _answers(test):
        if _stands_in(answer.text, test.guidelines):
            yield ("guidelines",), f"give away {answer.what} ({short(answer.text)!r}): the user could say it"
        for k, turn in enumerate(() if _is_quiz(test) else test.turns):
            if _stands_in(answer.text, turn.user):
                yield ("turns", k, "user"), f"gives away {answer.what} ({short(answer.text)!r})"


def _answers(test: Test) -> Iterator[_Answer]:
    data = repr(test.user_info)
    for j, evaluation in enumerate(test.evaluations):
        said: list[str] = []
        match evaluation:
            case Contains():
                said = [evaluation.text]
            case AnswerMatches():
                said = list(evaluation.expected)
        for text in said:
            # What is the user's own, he may say: the agent is to repeat it.
            if len(text.strip()) >= _LEAST_TELLING and text not in data:
                yield _Answer(f"the answer that evaluations[{j}] looks for", text.strip())
        for name in ("tool_name", "rule_code"):
            code = getattr(evaluation, name, None)
            if isinstance(code, str) and re.search(r"[_-]", code):
                yield _Answer(f"the name that evaluations[{j}] looks for", code)


def _stands_in(needle: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text, re.IGNORECASE) is not None
