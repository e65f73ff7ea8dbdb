"""The items that people label: criteria of a run's conversations, without the judge's verdicts."""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import JsonValue

from ci_evals.domain.checks.rubric import WHOLE, Level, Rubric
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import history, planned_turns
from ci_evals.domain.transcript import END_REASONS
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.extension_support.rejudging.saved import transcript_of
from ci_evals.grading.transcript_view import lines_never_sent
from ci_evals.support.text import visible


class Part(NamedTuple):
    """Something of a conversation, as a labeller sees it."""

    kind: Literal["background", "user", "agent", "end"]
    head: str
    text: str


@dataclass(frozen=True)
class JudgedItem:
    """A verdict of the judge that decides."""

    suite: str
    test: TestResult
    trial: TrialResult
    finding: Finding
    rubric: Rubric | None

    @property
    def criterion(self) -> str:
        """Its text as a labeler sees it."""
        return visible(self.finding.criterion)

    @property
    def passed(self) -> bool:
        """The judge's verdict."""
        return self.finding.outcome is Outcome.PASSED

    @property
    def part_keys(self) -> Sequence["PartKey"]:
        """The parts that the verdict belongs to."""
        keys: list[PartKey] = [("all", "all"), ("criterion", self.criterion)]
        return [*keys, ("category", self.finding.category)] if self.finding.category else keys


Kind = Literal["all", "criterion", "category"]
PartKey = tuple[Kind, str]
"""A part of the verdicts: all, those on a criterion, or those of a category."""


@dataclass(frozen=True)
class Item(JudgedItem):
    """A judged criterion of a conversation. The same of two trials alike is one item."""

    id: str
    """A digest of criterion and conversation as they are shown."""
    conversation: str
    """A digest of it."""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The rubric, if there is one, and the conversation."""
        return (*_rubric(self.rubric), *_parts(self.test, self.trial))


def judged(results: Results) -> Iterator[JudgedItem]:
    """The verdicts of the judge, but for undecided ones and those of trials that count in no score.

    What is judged by the agent's steps or calls is left out too: these are not shown to people.
    """
    for suite in results.suites:
        for test in suite.tests:
            for trial in test.trials:
                findings = trial.findings if trial.counts else ()
                for place, finding in enumerate(findings, start=1):
                    rubric = test.rubrics.get(place)
                    decided = finding.kind == "judged" and finding.outcome is not Outcome.UNDECIDED
                    by_steps = finding.claims is not None or (rubric is not None and rubric.steps)
                    if decided and not by_steps:
                        yield JudgedItem(suite.name, test, trial, finding, rubric)


def pass_rates(results: Results) -> Mapping[PartKey, float]:
    """The share of passing verdicts: of all, of each criterion, and of each category."""
    outcomes: dict[PartKey, list[bool]] = defaultdict(list)
    for verdict in judged(results):
        for part in verdict.part_keys:
            outcomes[part].append(verdict.passed)
    return {part: sum(passed) / len(passed) for part, passed in outcomes.items()}


def items(results: Results) -> list[Item]:
    """All items of a run, in its order. Of identical trials the first verdict counts."""
    by_id: dict[str, Item] = {}
    for item in all_items(results):
        by_id.setdefault(item.id, item)
    return list(by_id.values())


def all_items(results: Results) -> Iterator[Item]:
    """The items of a run, also of identical trials."""
    digested: TrialResult | None = None
    conversation = ""
    for verdict in judged(results):
        if verdict.trial is not digested:
            digested = verdict.trial
            conversation = _digest([list(part) for part in _parts(verdict.test, verdict.trial)])
        rubric = [list(part) for part in _rubric(verdict.rubric)]
        # A letter first: a spreadsheet makes a number of digits, and a small one of 12e45678.
        id_ = f"i{_digest([verdict.criterion, rubric, conversation])}"
        yield Item(**vars(verdict), id=id_, conversation=conversation)


def sample(items: Sequence[Item], most: int, seed: int) -> list[Item]:
    """Draw at most `most` items, as many fails as passes if possible, in an order that reveals nothing.

    Each pass is as likely to be drawn as any other, and each fail: only so can what is told of the sample be
    weighted back. They are spread over criteria and tests as they are in the run.
    """
    passes, fails = ([item for item in items if item.passed is passed] for passed in (True, False))
    of_fails = min(len(fails), max(most // 2, most - len(passes)))
    of_passes = min(len(passes), most - of_fails)
    rng = random.Random(f"{seed} sample")  # noqa: S311  # a sample, not a secret
    drawn = [*spread(passes, of_passes, rng), *spread(fails, of_fails, rng)]
    drawn.sort(key=lambda item: item.id)
    rng.shuffle(drawn)
    return drawn


def spread(items: Sequence[Item], most: int, rng: random.Random) -> list[Item]:
    """Systematic sampling (Madow, 1949): at equal steps through what is put in order, from a random start."""
    if not most:
        return []

    def order(item: Item) -> tuple[str, str, str, float]:
        return item.criterion, item.suite, item.test.name, rng.random()

    ordered = sorted(items, key=order)
    start = rng.random()
    return [
        ordered[min(len(ordered) - 1, int((start + index) * len(ordered) / most))] for index in range(most)
    ]


def _parts(test: TestResult, trial: TrialResult) -> tuple[Part, ...]:
    """The parts that the judge is shown too, without characters that cannot be displayed."""
    parts = [Part("background", "The user's situation", _listed(test.user_info))] if test.user_info else []
    parts.append(Part("background", "How the user was meant to act", test.guidelines))
    for message in history(test.turns):
        head = f"Said before the test: {message['role']}"
        parts.append(Part("background", head, message["content"]))
    turns = planned_turns(test.turns)
    for turn in trial.turns.without_traces():
        parts.append(Part("user", f"{turn.index}. User", turn.user))
        parts.append(Part("agent", f"{turn.index}. Agent", turn.agent))
        planned = turns[turn.index - 1] if turn.index <= len(turns) else None
        if planned and planned.expectation:
            parts.append(
                Part("background", f"{turn.index}. What the test's author expected", planned.expectation)
            )
    if trial.closing_remark:
        parts.append(Part("background", "The user's last remark, not sent", trial.closing_remark))
    if unsent := lines_never_sent(turns, transcript_of(trial)):
        lines = "\n".join(f"{line['turn']}. {line['user']}" for line in unsent)
        parts.append(Part("background", "Lines that were never sent", lines))
    parts.append(Part("end", "How it ended", f"{END_REASONS[trial.status].capitalize()}."))
    return tuple(Part(part.kind, part.head, visible(part.text).strip()) for part in parts)


def _rubric(rubric: Rubric | None) -> Iterator[Part]:
    """The rubric of a graded criterion: its levels, their scores, and the score to pass."""
    for dimension in rubric.dimensions if rubric else ():
        levels = [_level(level) for level in dimension.levels]
        told = [dimension.description, *levels] if dimension.description else levels
        head = (
            "Levels"
            if dimension.name == WHOLE
            else f"Levels of {dimension.name}, weight {dimension.weight:g}"
        )
        yield Part("background", visible(head), visible("\n".join(told)))
    if rubric:
        least = f"It is passed if that is at least {rubric.pass_at:g}."
        yield Part("background", "When to pass", f"{least} Of several dimensions the weighted mean counts.")


def _level(level: Level) -> str:
    name = f"{level.name} ({level.score:g})"
    return f"{name}: {level.description}" if level.description else name


def _listed(values: dict[str, JsonValue]) -> str:
    return "\n".join(f"{name}: {_as_text(value)}" for name, value in values.items())


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:20]
