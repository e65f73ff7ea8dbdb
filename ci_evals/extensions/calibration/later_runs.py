"""A calibration given to later runs, as long as their judge is the one that was calibrated."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from ci_evals.adapters import input_files
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extension_registry import Addition
from ci_evals.extensions.calibration.items import pass_rates
from ci_evals.extensions.calibration.judge_accuracy import corrected
from ci_evals.extensions.calibration.result import Calibration, OldCalibration
from ci_evals.scoring.agreement.judges import judge_of, unlike
from ci_evals.support import dataclass_json
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
        return dataclass_json.from_json(Calibration, input_files.read(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        raise UsageError(
            f"{path}: not what `ci-evals calibrate` writes; name its file (calibration.json), or "
            "make it again"
        ) from error


def given(results: Results, calibration: Calibration) -> Results:
    """Return a run with what is known of its judge, or why a calibration of another judge says nothing of it.

    The judge's errors are as they were found; the pass rate, and what it is without them, are the run's.
    """
    judge = judge_of(results)
    if judge is None:
        return results
    if why := unlike(calibration.judge, judge):
        return with_calibration(results, OldCalibration(at=calibration.at, why=why))
    rates = pass_rates(results)
    own = results.run.id == calibration.run
    parts = []
    for part in calibration.parts:
        rate = rates.get((part.kind, part.name))
        parts.append(replace(part, pass_rate=rate, corrected=corrected(part.counted, rate, own=own)))
    return with_calibration(results, replace(calibration, parts=tuple(parts)))


def with_calibration(results: Results, calibration: Calibration | OldCalibration) -> Results:
    """Return a run with a calibration instead of any other."""
    return results.with_studies(calibration, without={Calibration.KEY, OldCalibration.KEY})


def rejudged(results: Results, judged: Results) -> Results:
    """Return `results` with the calibration of the run whose conversations were judged again."""
    known = judged.study(Calibration)
    return given(results, known) if known else results


def merged(results: Results, shards: Sequence[Results]) -> Results:
    """Return `results` with the calibration that all shards were given alike, if it is one."""
    known = {_without_run(shard.study(Calibration)) for shard in shards}
    old = {shard.study(OldCalibration) for shard in shards}
    if len(known) == 1 and (calibration := shards[0].study(Calibration)):
        return given(results, calibration)
    if len(old) == 1 and (same := old.pop()):
        return with_calibration(results, same)
    return results


def _without_run(calibration: Calibration | None) -> Calibration | None:
    """What does not depend on the run that a calibration was given to."""
    if calibration is None:
        return None
    parts = tuple(replace(part, pass_rate=None, corrected=None) for part in calibration.parts)
    return replace(calibration, parts=parts)
