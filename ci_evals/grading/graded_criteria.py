"""Graded criteria: a judge names a level for each dimension of a rubric, and the levels give a grade."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from ci_evals.domain.actions import is_traced
from ci_evals.domain.checks.evaluation import Graded
from ci_evals.domain.checks.rubric import BUILT_IN_FILE, CANNOT_TELL, Level, Rubric, RubricDimension, key_of
from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.verdict import Cause, DimensionGrade, Grade, Outcome, Verdict, Vote
from ci_evals.grading import grounds
from ci_evals.grading.grounds import Citation, StatedGrounds
from ci_evals.grading.judge import UNREADABLE, JudgeContext, parts_of, rotated
from ci_evals.grading.voting import VoidAnswerError, no_majority, verdict_of, with_votes
from ci_evals.ports import Prompt
from ci_evals.support.json_text import strict_object
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.templates import render
from ci_evals.support.text import has_words

SYSTEM_TEMPLATE = "grading/prompts/rubric_system.md.j2"
TEMPLATE = "grading/prompts/rubric.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE, BUILT_IN_FILE)
"""All that a judge may be shown besides the suite's own words and conversations."""


async def decide(context: JudgeContext, evaluation: Graded) -> Verdict:
    """Return the grade of the votes, and whether the criterion is passed with it.

    Undecided if too few votes name a level for every dimension, or if a dimension is judged by the agent's
    actions and no reply reports any.
    """
    rubric = context.redactor.model(evaluation.whole_rubric)
    if rubric.steps:
        if not any(map(is_traced, context.transcript.turns)):
            names = " and ".join(repr(dimension.name) for dimension in rubric.dimensions if dimension.steps)
            return Verdict.undecided(
                Cause.NO_EVIDENCE, f"no reply carried a trace, by which {names} is judged"
            )
        context = replace(context, actions=True)
    criterion = context.redactor.text(evaluation.criterion)

    async def vote(index: int) -> Vote:
        prompt = _prompt(context, criterion, rubric, context.panel.rotation(index))
        return await context.panel.ask(index, prompt, lambda text: read(text, rubric, context))

    return await context.panel.poll(vote, MedianLevel())


class _DimensionAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    dimension: str
    reason: str
    evidence: list[Citation]
    level: str


class _GradedAnswer(StatedGrounds):
    """The form of a judge's answer, reasoning before levels."""

    reasoning: str
    dimensions: list[_DimensionAnswer]


def _prompt(context: JudgeContext, criterion: str, rubric: Rubric, rotation: int) -> Prompt:
    dimensions = rotated(rubric.dimensions, rotation)
    best_first = rotation % 2 == 0
    text = render(
        TEMPLATE,
        parts=parts_of(rotation),
        criterion=criterion,
        rubric=[_prompt_data(dimension, best_first=best_first) for dimension in dimensions],
        best_first=best_first,
        **context.prompt_data,
    )
    return Prompt(
        system=render(SYSTEM_TEMPLATE, count=len(dimensions), steps=rubric.steps),
        text=text,
        schema=_schema(dimensions, best_first=best_first),
        schema_name="grades",
        shared=context.shared(text),
    )


def _prompt_data(dimension: RubricDimension, *, best_first: bool) -> dict[str, object]:
    """Return a dimension for the judge, who is not shown weights and scores."""
    data: dict[str, object] = {"dimension": dimension.name}
    if dimension.description:
        data["description"] = dimension.description
    if dimension.steps:
        data["judged_by"] = "did"
    data["levels"] = [_level_data(level) for level in _levels(dimension, best_first=best_first)]
    return data


def _level_data(level: Level) -> dict[str, str]:
    if level.description:
        return {"level": level.name, "description": level.description}
    return {"level": level.name}


def _levels(dimension: RubricDimension, *, best_first: bool) -> Sequence[Level]:
    return dimension.levels if best_first else dimension.levels[::-1]


def _schema(dimensions: Sequence[RubricDimension], *, best_first: bool) -> dict[str, object]:
    """Return the schema of an answer. Only `read` checks which level belongs to which dimension."""
    names = [level.name for dimension in dimensions for level in _levels(dimension, best_first=best_first)]
    dimension = {
        "dimension": {"type": "string", "enum": [dimension.name for dimension in dimensions]},
        "reason": {"type": "string"},
        "evidence": grounds.CITATIONS_SCHEMA,
        "level": {"type": "string", "enum": [*dict.fromkeys(names), CANNOT_TELL]},
    }
    return strict_object(
        {
            "reasoning": {"type": "string"},
            "dimensions": {"type": "array", "items": strict_object(dimension)},
            **grounds.GROUNDS_SCHEMA,
        }
    )


def read(text: str, rubric: Rubric, context: JudgeContext) -> Verdict:
    """Return the verdict of one answer.

    A grade above zero counts in the score, passed or not, so it must rest on something, as a pass must.

    Raises:
        LLMAnswerError: the answer cannot be read.
        VoidAnswerError: it does not count.
    """
    answer = parse_answer(_GradedAnswer, text, context.shown)
    if answer is None:
        raise LLMAnswerError(UNREADABLE)
    if not all(map(has_words, (answer.reasoning, *(given.reason for given in answer.dimensions)))):
        raise VoidAnswerError(grounds.NO_WORDS)
    by_name = {key_of(given.dimension): given for given in answer.dimensions}
    names = [key_of(dimension.name) for dimension in rubric.dimensions]
    if sorted(key_of(given.dimension) for given in answer.dimensions) != sorted(names):
        raise VoidAnswerError("the judge did not name each dimension of the rubric once")
    given_answers = [by_name[name] for name in names]
    checked = context.grounds(answer, [citation for given in given_answers for citation in given.evidence])
    graded: list[DimensionGrade] = []
    for dimension, given in zip(rubric.dimensions, given_answers, strict=True):
        if key_of(given.level) == CANNOT_TELL:
            reason = f"{dimension.name}: {given.reason.strip()}"
            return checked.of(Verdict.undecided(Cause.CANNOT_TELL, reason))
        graded.append(_dimension_grade(dimension, given))
    grade = Grade.of(rubric.pass_at, tuple(graded))
    if checked.rests_on is None and (grade.passes() or grade.exact() > 0):
        raise VoidAnswerError(checked.missing)
    return checked.of(_verdict(grade, answer.reasoning.strip()))


def _dimension_grade(dimension: RubricDimension, given: _DimensionAnswer) -> DimensionGrade:
    levels = [level for level in dimension.levels if key_of(level.name) == key_of(given.level)]
    if len(levels) != 1:
        raise VoidAnswerError(f"the judge named a level that {dimension.name!r} does not have")
    return DimensionGrade(
        name=dimension.name,
        level=levels[0].name,
        score=levels[0].score,
        weight=dimension.weight,
        reason=given.reason.strip(),
    )


def _verdict(grade: Grade, reason: str) -> Verdict:
    outcome = Outcome.PASSED if grade.passes() else Outcome.FAILED
    return Verdict(outcome=outcome, reason=reason, grade=grade)


class MedianLevel:
    """In each dimension, the best level that more than half of the maximum number of votes reach.

    With all votes that is the median, and with one less the lower median. A vote that names no levels reaches
    none, so that losing one never makes a grade better.
    """

    def more(self, votes: Sequence[Vote], most: int) -> int:
        """Ask for as many votes as a majority for one level takes, in the dimension that lacks most.

        None once each dimension has one, since no other vote moves a median then, or if too few are left.
        """
        grades, majority, left = _grades(votes), most // 2 + 1, most - len(votes)
        if len(grades) + left < majority:
            return 0
        agreed = [max(Counter(grade.level for grade in row).values()) for row in _by_dimension(grades)]
        return min(left, max(0, majority - min(agreed, default=0)))

    def verdict(self, votes: Sequence[Vote], most: int) -> Verdict:
        """Return the grade of the medians, with reason and evidence of the first vote for that outcome."""
        if most == 1:
            return verdict_of(votes[0])
        grades = _grades(votes)
        if len(grades) <= most // 2:
            return with_votes(no_majority(votes, most), votes)
        levels = tuple(_level_reached(row, most // 2 + 1) for row in _by_dimension(grades))
        verdict = _verdict(Grade.of(grades[0].pass_at, levels), "")
        graded = sorted((vote for vote in votes if vote.grade), key=lambda vote: vote.rests_on is None)
        source = next((vote for vote in graded if vote.outcome is verdict.outcome), graded[0])
        explained = replace(
            verdict,
            reason=source.reason,
            evidence=source.evidence,
            quotes=source.quotes,
            rests_on=source.rests_on,
        )
        return with_votes(explained, votes)


def _grades(votes: Sequence[Vote]) -> list[Grade]:
    return [vote.grade for vote in votes if vote.grade]


def _by_dimension(grades: Sequence[Grade]) -> list[tuple[DimensionGrade, ...]]:
    return list(zip(*(grade.dimensions for grade in grades), strict=True))


def _level_reached(row: Sequence[DimensionGrade], votes: int) -> DimensionGrade:
    """Return the best level that this many votes reach, with the reason of the first that names it.

    Levels of the same score are ordered by name, so that the order of votes does not matter.
    """
    score, level = sorted((grade.score, grade.level) for grade in row)[-votes]
    return next(grade for grade in row if (grade.score, grade.level) == (score, level))
