"""Parts of facts about judge and simulated user: tables, warnings about criteria, and phrases."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.story.table import Table
from ci_evals.scoring.agreement.judges import judge_of, unlike

_NAMED = 2
"""Criteria that a sentence names: the marks at all of them, and the tables, have the rest."""
_NAME = 60
"""Characters of a criterion or a test that a sentence names."""


@dataclass(frozen=True)
class CriterionWarning:
    """The reason why the verdicts on a criterion are less reliable."""

    criterion: str
    suite: str | None
    """None stands for every suite, and for every test below."""
    test: str | None
    text: str


@dataclass(frozen=True)
class StudyReport:
    """The report on a study, as plain text that is not yet sanitized."""

    topic: str
    remark: str
    """In sentences."""
    tables: tuple[Table, ...] = ()
    """The same in numbers."""
    warnings: tuple[str, ...] = ()
    """Warnings that a reader needs before the numbers of the run, and what to do."""
    criterion_warnings: tuple[CriterionWarning, ...] = ()


def sentence(text: str) -> str:
    """`text` with one full stop at its end."""
    return f"{text.strip().rstrip('.')}."


def capitalized(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def criterion(name: str, test: str | None = None) -> str:
    """A criterion in quotation marks, with its test."""
    where = f" in {sanitize.one_line(test, _NAME)}" if test else ""
    return f"“{sanitize.one_line(name, _NAME)}”{where}"


def listed(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return numbers.listed(names, _NAMED)


def other_judge(results: Results, judge: JudgeUsed | None, *, own_prompt: bool = False) -> str:
    """The judge of a study, if it is not the run's.

    Args:
        results: The run's.
        judge: The study's.
        own_prompt: Whether the study has a prompt of its own, which then is no difference.
    """
    used = judge_of(results)
    if used is None or judge is None:
        return ""
    differs = unlike(replace(used, prompt=judge.prompt) if own_prompt else used, judge)
    return f" Judged by {', '.join(judge.models)}, which is {differs}." if differs else ""
