"""Labels compared with the verdicts of a run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.scoring.agreement.judge_used import judge_of
from ci_evals.studies.calibration.items import Item, items, judged
from ci_evals.studies.calibration.judge_accuracy import Kind, LabeledGroup, rater
from ci_evals.studies.calibration.labeled_verdicts import DRAWS, LabeledVerdict
from ci_evals.studies.calibration.result import Calibration
from ci_evals.studies.calibration.sheet_reading import Label

_PartKey = tuple[Kind, str]


@dataclass(frozen=True)
class Verdicts:
    """The numbers of passing and failing verdicts."""

    passes: int = 0
    fails: int = 0

    @property
    def pass_rate(self) -> float | None:
        """The share that pass."""
        return self.passes / (self.passes + self.fails) if self.passes + self.fails else None


def calibrate(results: Results, labels: Sequence[Label], at: datetime, seed: int = 0) -> Calibration:
    """Compare the judge of a run with people.

    Raises:
        UsageError: no judge decided anything in it, or none of the labels is of it.
    """
    judge = judge_of(results)
    items_by_id = {item.id: item for item in items(results)}
    if judge is None or not items_by_id:
        raise UsageError(
            "no judge has decided anything in this run, so that there is nothing to hold labels against"
        )
    labels_of_run = [label for label in labels if label.item in items_by_id]
    if not labels_of_run:
        raise UsageError(
            "none of the labels is of this run; name with --results the run that the sheet was made from, or "
            "one in which its conversations were judged again"
        )
    people = sorted({label.labeller.casefold() for label in labels_of_run})
    labels_by_item: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for label in labels_of_run:
        labels_by_item[label.item][label.labeller.casefold()] = label.passed
    labeled = {
        id_: LabeledVerdict(
            items_by_id[id_].conversation, items_by_id[id_].passed, tuple(map(by.get, people))
        )
        for id_, by in labels_by_item.items()
    }
    return Calibration(
        judge=judge,
        at=at,
        run=results.run.id,
        people=len(people),
        labels=sum(label.passed is not None for label in labels_of_run),
        cannot_tell=sum(label.passed is None for label in labels_of_run),
        ties=sum(one.is_labeled and one.by_people is None for one in labeled.values()),
        unknown=len(labels) - len(labels_of_run),
        parts=tuple(
            rater(group, seed=seed, draws=DRAWS if group.kind == "all" else DRAWS // 2)
            for group in _groups(results, items_by_id, labeled)
        ),
    )


def _groups(
    results: Results, items_by_id: Mapping[str, Item], labeled: Mapping[str, LabeledVerdict]
) -> Iterable[LabeledGroup]:
    """The groups: all together, then each criterion, then each category that somebody labeled."""
    rates = verdicts(results)
    distinct: dict[_PartKey, Counter[bool]] = defaultdict(Counter)
    found: dict[_PartKey, list[LabeledVerdict]] = defaultdict(list)
    for id_, item in items_by_id.items():
        for part in _parts_of(item.criterion, item.category):
            distinct[part][item.passed] += 1
            if id_ in labeled:
                found[part].append(labeled[id_])
    kinds: Sequence[Kind] = ("all", "criterion", "category")
    for kind, name in sorted(found, key=lambda part: (kinds.index(part[0]), part[1])):
        part = (kind, name)
        yield LabeledGroup(
            name=name,
            kind=kind,
            labeled=found[part],
            passes=distinct[part][True],
            fails=distinct[part][False],
            pass_rate=rates[part].pass_rate,
        )


def _parts_of(criterion: str, category: str | None) -> Sequence[_PartKey]:
    found: list[_PartKey] = [("all", "all"), ("criterion", criterion)]
    return [*found, ("category", category)] if category else found


def verdicts(results: Results) -> Mapping[_PartKey, Verdicts]:
    """Count passing and failing verdicts: all, of each criterion, and of each category."""
    counted: dict[_PartKey, Counter[bool]] = defaultdict(Counter)
    for one in judged(results):
        for part in _parts_of(one.criterion, one.finding.category):
            counted[part][one.passed] += 1
    return {part: Verdicts(count[True], count[False]) for part, count in counted.items()}
