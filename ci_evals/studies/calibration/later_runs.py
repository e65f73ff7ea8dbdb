"""A calibration given to later runs, as long as their judge is the one that was calibrated."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from ci_evals.adapters import input_files
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Calibration, OldCalibration, Rater
from ci_evals.scoring.agreement.judge_used import judge_of, unlike
from ci_evals.studies.calibration.judge_accuracy import corrected
from ci_evals.studies.calibration.study import Verdicts, verdicts
from ci_evals.study_registry import Addition
from ci_evals.support.redaction import Redactor


def read(path: Path) -> Addition:
    """Return what the calibration in a file says of a run.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    calibration = read_file(path)

    def add(results: Results, redactor: Redactor) -> Results:
        return given(results, redactor.model(calibration))

    return add


def read_file(path: Path) -> Calibration:
    """Return the calibration that an earlier `calibrate` has written.

    Raises:
        UsageError: it is not there, or something else.
    """
    try:
        return parse(input_files.read(path), str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse(text: bytes, source: str) -> Calibration:
    """Return the calibration in the text of a file.

    Raises:
        UsageError: it is something else.
    """
    try:
        return Calibration.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(
            f"{source}: not what `ci-evals calibrate` writes; name its file (calibration.json), or make it "
            "anew"
        ) from error


def given(results: Results, calibration: Calibration) -> Results:
    """A run with what is known of its judge, or, where it has another one, with why that says nothing of it.

    The judge's errors are as they were found; the pass rate, and what it is without them, are the run's.
    """
    judge = judge_of(results)
    if judge is None:
        return results
    if why := unlike(calibration.judge, judge):
        old = OldCalibration(at=calibration.at, why=why)
        return _with(results, None, old)
    rates = verdicts(results)
    parts = tuple(
        _anew(part, rates.get((part.kind, part.name)), results.run.id == calibration.run)
        for part in calibration.parts
    )
    return _with(results, calibration.model_copy(update={"parts": parts}), None)


def rejudged(results: Results, judged: Results) -> Results:
    """Return `results` with the calibration of the run whose conversations were judged again."""
    known = judged.studies.calibration
    return given(results, known) if known else results


def merged(results: Results, shards: Sequence[Results]) -> Results:
    """Return `results` with the calibration that all shards were given alike, or an earlier one's date."""
    if not shards:
        return results
    studies = [shard.studies for shard in shards]
    known, old = studies[0].calibration, studies[0].old_calibration
    if known and all(one.calibration and _bare(one.calibration) == _bare(known) for one in studies):
        return given(results, known)
    if old and all(one.old_calibration == old for one in studies):
        return _with(results, None, old)
    return results


def _bare(calibration: Calibration) -> Calibration:
    """What does not depend on the run that it was given to."""
    blank = {"pass_rate": None, "corrected": None}
    return calibration.model_copy(
        update={"parts": tuple(part.model_copy(update=blank) for part in calibration.parts)}
    )


def _anew(part: Rater, found: Verdicts | None, own: bool) -> Rater:
    rate = found.pass_rate if found else None
    return part.model_copy(update={"pass_rate": rate, "corrected": corrected(part.counted, rate, own=own)})


def _with(results: Results, calibration: Calibration | None, old: OldCalibration | None) -> Results:
    update = {"calibration": calibration, "old_calibration": old}
    return results.model_copy(update={"studies": results.studies.model_copy(update=update)})
