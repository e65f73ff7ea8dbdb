"""Graded criteria: a judge names a level for each dimension of a rubric, and a grade comes of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.evaluation import Graded
from ci_evals.domain.rubric import BUILT_IN_FILE, CANNOT_TELL, Rubric, RubricDimension, key_of
from ci_evals.domain.verdict import Cause, DimensionGrade, Grade, Outcome, Verdict, Vote
from ci_evals.grading import grounds
from ci_evals.grading.judge import EVIDENCE, PARTS, UNREADABLE, Evidence, JudgeContext, resting, turned
from ci_evals.grading.voting import counted, no_majority, verdict_of
from ci_evals.ports import Prompt
from ci_evals.support.json_text import answered
from ci_evals.support.templates import render
from ci_evals.support.text import has_words

SYSTEM_TEMPLATE = "grading/prompts/rubric_system.md.j2"
TEMPLATE = "grading/prompts/rubric.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE, BUILT_IN_FILE)
"""All that a judge may be shown besides the suite's own words and conversations."""


async def decide(context: JudgeContext, evaluation: Graded) -> Verdict:
    """The grade that the votes come to, and whether the criterion is passed with it.

    Undecided where too few votes name a level for every dimension, and where a dimension is judged by the
    agent's steps and no reply has told of any.
    """
    rubric = context.redactor.model(evaluation.whole_rubric)
    if rubric.steps:
        if not context.traced:
            return Verdict.undecided(
                Cause.NO_EVIDENCE,
                f"no reply carried a trace, by which {_names(rubric, by_steps=True)} is judged",
            )
        context = context.with_steps()
    criterion = context.redactor.text(evaluation.criterion)

    async def vote(index: int) -> Vote:
        prompt = _prompt(context, criterion, rubric, context.panel.turn(index))
        return await context.panel.ask(index, prompt, lambda text: read(text, rubric, context))

    return await context.panel.poll(vote, Median())


class _Level(BaseModel):
    """What a judge makes of one dimension."""

    model_config = ConfigDict(extra="forbid", strict=True)

    dimension: str
    reason: str
    evidence: list[Evidence]
    level: str


class _Answer(grounds.Stated):
    """What the judge must answer, reasoning before levels."""

    reasoning: str
    dimensions: list[_Level]


def _prompt(context: JudgeContext, criterion: str, rubric: Rubric, turn: int) -> Prompt:
    """The question; its parts, the dimensions and the levels have an order of their own for each turn."""
    dimensions = turned(rubric.dimensions, turn)
    best_first = turn % 2 == 0
    return Prompt(
        system=render(SYSTEM_TEMPLATE, count=len(dimensions), steps=rubric.steps),
        text=render(
            TEMPLATE,
            parts=turned(PARTS, turn),
            criterion=criterion,
            rubric=[_shown(one, best_first=best_first) for one in dimensions],
            best_first=best_first,
            **context.shown,
        ),
        schema=_schema(dimensions, best_first=best_first),
        schema_name="grades",
    )


def _shown(dimension: RubricDimension, *, best_first: bool) -> dict[str, Any]:
    """A dimension as a judge is shown it: without weight and scores, which are not its business."""
    levels = dimension.levels if best_first else dimension.levels[::-1]
    return {
        "dimension": dimension.name,
        **({"description": dimension.description} if dimension.description else {}),
        **({"judged_by": "did"} if dimension.steps else {}),
        "levels": [
            {"level": level.name} | ({"description": level.description} if level.description else {})
            for level in levels
        ],
    }


def _schema(dimensions: Sequence[RubricDimension], *, best_first: bool) -> dict[str, Any]:
    """What the answer must be like. Which level belongs to which dimension is looked at when it is read."""
    names = [
        level.name
        for dimension in dimensions
        for level in (dimension.levels if best_first else dimension.levels[::-1])
    ]
    level = {
        "dimension": {"type": "string", "enum": [dimension.name for dimension in dimensions]},
        "reason": {"type": "string"},
        "evidence": EVIDENCE,
        "level": {"type": "string", "enum": [*dict.fromkeys(names), CANNOT_TELL]},
    }
    properties = {
        "reasoning": {"type": "string"},
        "dimensions": {"type": "array", "items": _object(level)},
        **grounds.SCHEMA,
    }
    return _object(properties)


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has all of these properties and no others."""
    return {
        "type": "object",
        "properties": {**properties},
        "required": [*properties],
        "additionalProperties": False,
    }


def read(text: str, rubric: Rubric, context: JudgeContext) -> Verdict | str:
    """The verdict of one answer, or why it is void. Raises `LLMAnswerError` for one that cannot be read.

    A grade above nothing counts in the score, passed or not: it must rest on something, as a pass must.
    """
    try:
        answer = _Answer.model_validate(answered(text))
    except (ValueError, RecursionError, ValidationError):
        raise LLMAnswerError(UNREADABLE) from None
    said = {key_of(one.dimension): one for one in answer.dimensions}
    wanted = [key_of(dimension.name) for dimension in rubric.dimensions]
    if why := _void(answer, wanted):
        return why
    evidence = [one for name in wanted for one in said[name].evidence]
    found = context.grounds(answer, evidence)
    if isinstance(found, str):
        return found
    graded: list[DimensionGrade] = []
    for dimension, name in zip(rubric.dimensions, wanted, strict=True):
        one = said[name]
        if key_of(one.level) == CANNOT_TELL:
            reason = f"{dimension.name}: {one.reason.strip()}"
            return resting(Verdict.undecided(Cause.CANNOT_TELL, reason), found)
        levels = [level for level in dimension.levels if key_of(level.name) == key_of(one.level)]
        if len(levels) != 1:
            return f"the judge named a level that {dimension.name!r} does not have"
        graded.append(
            DimensionGrade(
                name=dimension.name,
                level=levels[0].name,
                score=levels[0].score,
                weight=dimension.weight,
                reason=one.reason.strip(),
            )
        )
    grade = Grade.of(rubric.pass_at, tuple(graded))
    if found.rests_on is None and (grade.passes() or grade.exact() > 0):
        return grounds.NOTHING
    return resting(_verdict(grade, answer.reasoning.strip()), found)


def _void(answer: _Answer, wanted: Sequence[str]) -> str | None:
    """Why an answer is void, whatever the conversation was; None for one that may count."""
    if not all(map(has_words, (answer.reasoning, *(one.reason for one in answer.dimensions)))):
        return grounds.NO_WORDS
    if sorted(key_of(one.dimension) for one in answer.dimensions) != sorted(wanted):
        return "the judge did not name each dimension of the rubric once"
    return None


def _verdict(grade: Grade, reason: str) -> Verdict:
    outcome = Outcome.PASSED if grade.passes() else Outcome.FAILED
    return Verdict(outcome=outcome, reason=reason, grade=grade)


class Median:
    """In each dimension the best level that more than half of all votes that are wanted reach.

    With all of them that is the median, and with one less the lower median. A vote that names no levels
    reaches none, so that losing one never makes a grade better.
    """

    def more(self, votes: Sequence[Vote], most: int) -> int:
        """As many as a majority for one level takes, in the dimension that lacks most.

        None once there is one in each dimension, since then no other vote moves a median; nor where too few
        votes can name levels any more.
        """
        grades, majority, left = _grades(votes), most // 2 + 1, most - len(votes)
        if len(grades) + left < majority:
            return 0
        agreed = [max(Counter(one.level for one in row).values()) for row in _rows(grades)]
        return min(left, max(0, majority - min(agreed, default=0)))

    def verdict(self, votes: Sequence[Vote], most: int) -> Verdict:
        """The grade of the medians, with reason and evidence of the first vote that has the same outcome."""
        if most == 1:
            return verdict_of(votes[0])
        grades = _grades(votes)
        if len(grades) <= most // 2:
            return counted(no_majority(votes, most), votes)
        levels = tuple(_reached(row, most // 2 + 1) for row in _rows(grades))
        grade = Grade.of(grades[0].pass_at, levels)
        verdict = _verdict(grade, "")
        graded = sorted((vote for vote in votes if vote.grade), key=lambda vote: vote.rests_on is None)
        like = next((vote for vote in graded if vote.outcome is verdict.outcome), graded[0])
        said = {name: getattr(like, name) for name in ("reason", "evidence", "quotes", "rests_on")}
        return counted(verdict.model_copy(update=said), votes)


def _grades(votes: Sequence[Vote]) -> list[Grade]:
    """Those of the votes that name a level for every dimension."""
    return [vote.grade for vote in votes if vote.grade]


def _rows(grades: Sequence[Grade]) -> list[tuple[DimensionGrade, ...]]:
    """What the votes say of each dimension."""
    return list(zip(*(grade.dimensions for grade in grades), strict=True))


def _reached(row: Sequence[DimensionGrade], votes: int) -> DimensionGrade:
    """The best level that so many votes reach, with the reason of the first that names it.

    Levels that are worth the same stand in the order of their names, so that the order of votes is all one.
    """
    place = sorted((one.score, one.level) for one in row)[-votes]
    return next(one for one in row if (one.score, one.level) == place)


def _names(rubric: Rubric, *, by_steps: bool) -> str:
    return " and ".join(repr(one.name) for one in rubric.dimensions if one.steps is by_steps)
