"""Labels compared with the verdicts of a run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.scoring.agreement.judge_used import judge_of
from ci_evals.studies.calibration.items import Item, items, judged
from ci_evals.studies.calibration.judge_accuracy import Group, Kind, rater
from ci_evals.studies.calibration.labelled import DRAWS, Labelled
from ci_evals.studies.calibration.result import Calibration
from ci_evals.studies.calibration.sheet_reading import Label

_Part = tuple[Kind, str]


@dataclass(frozen=True)
class Verdicts:
    """How many verdicts of a kind pass and fail."""

    passes: int = 0
    fails: int = 0

    @property
    def pass_rate(self) -> float | None:
        """The share that pass."""
        return self.passes / (self.passes + self.fails) if self.passes + self.fails else None


def calibrate(results: Results, labels: Sequence[Label], at: datetime, seed: int = 0) -> Calibration:
    """What people say of the judge of a run.

    Raises:
        UsageError: no judge decided anything in it, or none of the labels is of it.
    """
    judge = judge_of(results)
    there = {item.id: item for item in items(results)}
    if judge is None or not there:
        raise UsageError(
            "no judge has decided anything in this run, so that there is nothing to hold labels against"
        )
    of_run = [label for label in labels if label.item in there]
    if not of_run:
        raise UsageError(
            "none of the labels is of this run; name with --results the run that the sheet was made from, or "
            "one in which its conversations were judged again"
        )
    people = sorted({label.labeller.casefold() for label in of_run})
    said: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for label in of_run:
        said[label.item][label.labeller.casefold()] = label.passed
    labelled = {
        id_: Labelled(there[id_].conversation, there[id_].passed, tuple(map(by.get, people)))
        for id_, by in said.items()
    }
    return Calibration(
        judge=judge,
        at=at,
        run=results.run.id,
        people=len(people),
        labels=sum(label.passed is not None for label in of_run),
        cannot_tell=sum(label.passed is None for label in of_run),
        ties=sum(one.told and one.by_people is None for one in labelled.values()),
        unknown=len(labels) - len(of_run),
        parts=tuple(
            rater(group, seed=seed, draws=DRAWS if group.kind == "all" else DRAWS // 2)
            for group in _groups(results, there, labelled)
        ),
    )


def _groups(results: Results, there: Mapping[str, Item], labelled: Mapping[str, Labelled]) -> Iterable[Group]:
    """All together, then the criteria, then the categories that somebody labelled."""
    rates = verdicts(results)
    distinct: dict[_Part, Counter[bool]] = defaultdict(Counter)
    found: dict[_Part, list[Labelled]] = defaultdict(list)
    for id_, item in there.items():
        for part in _parts_of(item.criterion, item.category):
            distinct[part][item.passed] += 1
            if id_ in labelled:
                found[part].append(labelled[id_])
    kinds: Sequence[Kind] = ("all", "criterion", "category")
    for kind, name in sorted(found, key=lambda part: (kinds.index(part[0]), part[1])):
        part = (kind, name)
        yield Group(
            name=name,
            kind=kind,
            labelled=found[part],
            passes=distinct[part][True],
            fails=distinct[part][False],
            pass_rate=rates[part].pass_rate,
        )


def _parts_of(criterion: str, category: str | None) -> Sequence[_Part]:
    found: list[_Part] = [("all", "all"), ("criterion", criterion)]
    return [*found, ("category", category)] if category else found


def verdicts(results: Results) -> Mapping[_Part, Verdicts]:
    """How many verdicts pass and fail: of all, of each criterion, and of each category."""
    counted: dict[_Part, Counter[bool]] = defaultdict(Counter)
    for one in judged(results):
        for part in _parts_of(one.criterion, one.finding.category):
            counted[part][one.passed] += 1
    return {part: Verdicts(count[True], count[False]) for part, count in counted.items()}
