"""`label --spot-check` and `calibrate --spot-check`: a sheet of verdicts on two runs, and what it tells."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extensions.calibration import sheet_reading
from ci_evals.extensions.calibration.items import Item, all_items, spread
from ci_evals.extensions.calibration.labeled_verdicts import LabeledVerdict
from ci_evals.extensions.calibration.sheet_reading import Label
from ci_evals.extensions.calibration.spot_check import ENOUGH, FEWEST, Side, SideVerdict, SpotCheck
from ci_evals.library.runs import results_file
from ci_evals.reports import sanitize
from ci_evals.scoring.agreement.judges import judge_of, unlike
from ci_evals.scoring.comparison.pairing import pair
from ci_evals.support.redaction import Redactor

_Z = 1.96


@dataclass(frozen=True)
class SpotCheckRuns:
    """The verdicts of one judge on a run and on its baseline, and those of both that people label."""

    head: Sequence[Item]
    base: Sequence[Item]
    most: int
    """Verdicts to label of each run."""
    seed: int
    changed: int = 0
    """Tests of both runs that are not defined alike, and so left out."""

    @classmethod
    def read(cls, head: Path, base: Path, most: int, seed: int, redactor: Redactor) -> "SpotCheckRuns":
        """Read both runs; the baseline may be the run itself, if it played the base agent too.

        Raises:
            UsageError: one cannot be read, or their verdicts cannot be compared.
        """
        files = [results_file(path) for path in (head, base)]
        this = SavedRun.open(files[0], redactor).results
        if files[0].resolve() == files[1].resolve():
            other = this.base_side
            if other is None:
                raise UsageError(
                    f"`spot_check={base}`: this run has no base agent. Name a run of the baseline."
                )
        else:
            other = SavedRun.open(files[1], redactor).results
        judges = [judge_of(run) for run in (this, other)]
        if judges[0] is None or judges[1] is None:
            raise UsageError(f"`spot_check={base}`: no judge has decided anything in one of the runs.")
        if why := unlike(judges[1], judges[0]):
            raise UsageError(f"`spot_check={base}`: the judge of this run differs: {why}.")
        paired = pair(this, other)
        alike = [(one.suite, one.head.name) for suite in paired for one in suite.pairs]
        own, others = _by_test(this), _by_test(other)
        shared = [key for key in alike if key in own and key in others]
        if not shared:
            why = "share no test that is defined alike and that a judge has decided"
            raise UsageError(f"`spot_check={base}`: the runs {why}.")
        if most < 2:
            raise UsageError("`items=`: a spot check takes at least 4 verdicts, 2 of each run.")
        equal = [_as_many(own[key], others[key]) for key in shared]
        head_items, base_items = ([item for side in equal for item in side[number]] for number in (0, 1))
        return cls(head_items, base_items, most, seed, sum(len(suite.changed) for suite in paired))

    @cached_property
    def drawn(self) -> tuple[Sequence[Item], Sequence[Item]]:
        """The verdicts to label, of this run and of the baseline: each is as likely as any other."""
        return self._drawn(self.head, "head"), self._drawn(self.base, "base")

    @property
    def sheet(self) -> list[Item]:
        """The items of both in an order that tells nothing of whose they are."""
        by_id = {item.id: item for side in self.drawn for item in side}
        items = [by_id[key] for key in sorted(by_id)]
        random.Random(f"{self.seed} sheet").shuffle(items)  # noqa: S311  # an order, not a secret
        return items

    def checked(self, labels: Sequence[Label]) -> SpotCheck:
        """The judge of both, by people's labels.

        Raises:
            UsageError: labels are of other verdicts, or too few.
        """
        if unknown := {label.item for label in labels} - {item.id for item in self.sheet}:
            raise UsageError(
                f"{numbers.count(len(unknown), 'label')} of verdicts that are not on this sheet: name "
                "the same runs, `items=` and `seed=` as for label."
            )
        said: dict[str, list[bool | None]] = defaultdict(list)
        for label in labels:
            said[label.item].append(label.passed)
        head, base = self.drawn
        found = SpotCheck(_side(self.head, head, said), _side(self.base, base, said))
        if min(found.labels) < 2:
            raise UsageError("one of the runs has fewer than 2 labels. Label more of the sheet.")
        return found

    def _drawn(self, items: Sequence[Item], side: str) -> list[Item]:
        rng = random.Random(f"{self.seed} {side}")  # noqa: S311  # a sample, not a secret
        return spread(items, min(self.most, len(items)), rng)


def check_spot(sheets: Sequence[Path], runs: SpotCheckRuns, context: RunContext) -> None:
    """Print what people's labels say of the judge on both runs.

    Raises:
        UsageError: a sheet cannot be read, or is of other runs.
    """
    for line in sentences(runs.checked(sheet_reading.read(sheets))):
        context.show(sanitize.log_line(line, 1_000))
    if runs.changed:
        changed = numbers.count(runs.changed, "test")
        context.show(f"Left out: {changed} whose definition differs between the runs.")


def sentences(found: SpotCheck) -> Iterator[str]:
    """What the labels say: of the judge, then of the change."""
    labels = "{} + {} labels".format(*found.labels)
    if found.differs is None:
        yield (
            f"Too few labels to tell whether the judge treats the new answers alike ({labels}): it takes "
            f"{FEWEST} + {FEWEST}."
        )
        return
    by_judge = f"{_points(found.change, found.judge_error)} by the judge alone"
    by_people = f"{_points(found.corrected, found.error)} by people's labels"
    chance = numbers.p_value(found.p)
    if found.differs:
        more = "more" if found.difference > 0 else "fewer"
        yield (
            f"The judge treats the new answers differently ({labels}, {chance}): people pass "
            f"{numbers.score(abs(100 * found.difference))} points {more} of them than the judge does, beyond "
            "what they do with those of the baseline."
        )
        yield (
            f"Change of the share that passes, in points: {by_people}, which is less sure than {by_judge}. "
            "The gate goes by the judge."
        )
    else:
        yield f"No sign that the judge treats the new answers differently ({labels}, {chance})."
        also = f"; {by_people}" if found.corrects else f" (to correct it takes {ENOUGH} + {ENOUGH} labels)"
        yield f"Change of the share that passes, in points: {by_judge}{also}."


def _points(share: float, error: float) -> str:
    low, high = (100 * (share + side * _Z * error) for side in (-1, 1))
    shown = [numbers.signed(min(100.0, max(-100.0, bound))) for bound in (low, high)]
    return f"{numbers.signed(100 * share)} ({shown[0]} to {shown[1]})"


def _as_many(head: list[Item], base: list[Item]) -> tuple[list[Item], list[Item]]:
    """The verdicts of as many trials on both sides: a test that one run played more would weigh more there.

    Args:
        head: The verdicts on a test of this run.
        base: Those of the baseline.
    """
    trials = [sorted({item.trial.index for item in side}) for side in (head, base)]
    most = min(map(len, trials))
    here, there = (
        [item for item in side if item.trial.index in indexes[:most]]
        for side, indexes in zip((head, base), trials, strict=True)
    )
    return here, there


def _by_test(run: Results) -> Mapping[tuple[str, str], list[Item]]:
    by_test: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in all_items(run):
        by_test[item.suite, item.test.name].append(item)
    return by_test


def _side(items: Sequence[Item], drawn: Sequence[Item], said: Mapping[str, list[bool | None]]) -> Side:
    """All verdicts of a run, with the labels of those that were drawn."""
    labeled = {id(item) for item in drawn}

    def people(item: Item) -> bool | None:
        if id(item) not in labeled:
            return None
        return LabeledVerdict(item.conversation, item.passed, tuple(said.get(item.id, ()))).by_people

    return Side(
        [
            SideVerdict((item.suite, item.test.name), item.trial.index, item.passed, people(item))
            for item in items
        ]
    )
