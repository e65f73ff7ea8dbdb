"""`calibrate`: filled sheets compared with the verdicts of a run, kept for later runs."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.files.output_paths import check_output
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extension_support.keeping import check_whole, keep
from ci_evals.extensions.calibration import sheet_reading, terminal
from ci_evals.extensions.calibration.items import Item, Kind, PartKey, items, pass_rates
from ci_evals.extensions.calibration.judge_accuracy import LabeledGroup, rater
from ci_evals.extensions.calibration.labeled_verdicts import DRAWS, LabeledVerdict
from ci_evals.extensions.calibration.later_runs import read_file, with_calibration
from ci_evals.extensions.calibration.result import Calibration
from ci_evals.extensions.calibration.sheet_reading import Label
from ci_evals.library.runs import results_file
from ci_evals.reports import sanitize
from ci_evals.scoring.agreement.judges import judge_of, unlike
from ci_evals.support import dataclass_json

_JUDGED_AGAIN = (
    "These verdicts judge conversations of an earlier run again. If the sheet was made "
    "from that run, its labels are no fair sample of them: make a sheet from this run, and calibrate "
    "only with that."
)


def check_judge(
    sheets: Sequence[Path], results_path: Path, output: Path, seed: int, context: RunContext
) -> None:
    """Print how the judge compares with people, and keep that in a file and with the run.

    Raises:
        UsageError: a sheet or the run cannot be read, no label is of it, or the file that is to be written
            holds something else; nothing is written then.
    """
    redactor = context.hide()
    file = results_file(results_path)
    inputs = {f"the sheet {path}": path for path in sheets}
    check_output("`output=`", output, {"`results=`": file, **inputs})
    labels = sheet_reading.read(sheets)
    run = SavedRun.open(file, redactor)
    check_whole(run)
    results = run.results
    try:
        calibration = calibrate(results, labels, datetime.now(UTC), seed)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
    calibration = redactor.model(calibration)
    _check_replaced(output, calibration)
    files.write(output, dataclass_json.to_json(calibration, indent=2) + "\n")
    context.show(terminal.render(calibration, context.width))
    if results.run.origin and results.run.origin.how == "rejudge":
        context.show(_JUDGED_AGAIN)
    context.show(sanitize.log_line(f"Written to {output}: commit it, and give it to run --calibration"))
    keep(with_calibration(results, calibration), file, context)


def _check_replaced(path: Path, calibration: Calibration) -> None:
    """Make sure that nothing but an earlier calibration of this judge is overwritten."""
    if not files.is_there(path):
        return
    try:
        before = read_file(path)
    except UsageError as error:
        raise UsageError(f"`output={path}`: another file is there: {error}") from error
    if why := unlike(before.judge, calibration.judge):
        raise UsageError(f"`output={path}`: the file there is of {why}; remove it, or name another file")


def calibrate(results: Results, labels: Sequence[Label], at: datetime, seed: int = 0) -> Calibration:
    """Compare the judge of a run with people.

    Raises:
        UsageError: no judge decided anything in it, or none of the labels is of it.
    """
    judge = judge_of(results)
    items_by_id = {item.id: item for item in items(results)}
    if judge is None or not items_by_id:
        raise UsageError(
            "no judge has decided anything in this run, so there is nothing to compare labels with"
        )
    labels_of_run = [label for label in labels if label.item in items_by_id]
    if not labels_of_run:
        raise UsageError(
            "none of the labels is of this run; name with `results=` the run that the sheet was made from, "
            "or one in which its conversations were judged again"
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
) -> Iterator[LabeledGroup]:
    """The groups: all together, then each criterion, then each category that somebody labeled."""
    rates = pass_rates(results)
    distinct: dict[PartKey, Counter[bool]] = defaultdict(Counter)
    labeled_by_part: dict[PartKey, list[LabeledVerdict]] = defaultdict(list)
    for id_, item in items_by_id.items():
        for part in item.part_keys:
            distinct[part][item.passed] += 1
            if id_ in labeled:
                labeled_by_part[part].append(labeled[id_])
    kinds: Sequence[Kind] = ("all", "criterion", "category")
    for part in sorted(labeled_by_part, key=lambda part: (kinds.index(part[0]), part[1])):
        kind, name = part
        yield LabeledGroup(
            name=name,
            kind=kind,
            labeled=labeled_by_part[part],
            passes=distinct[part][True],
            fails=distinct[part][False],
            pass_rate=rates[part],
        )
