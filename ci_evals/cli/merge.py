"""`merge`: the results of several runs in, one run's reports out, the gate's exit code."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from ci_evals.cli import actions
from ci_evals.cli.baseline import baseline_of
from ci_evals.cli.console import environment_keys, error_console, remember
from ci_evals.cli.other_settings import MergeSettings
from ci_evals.cli.places import Places
from ci_evals.cli.platform import Held, Platform
from ci_evals.cli.policy import in_force, read_policy
from ci_evals.cli.publish import publish
from ci_evals.cli.saved import read_clean
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results import SuiteResult
from ci_evals.redaction import Redactor
from ci_evals.reports.names import RESULTS
from ci_evals.scoring.conclude import conclude
from ci_evals.scoring.gate import Policy
from ci_evals.scoring.legs import Leg
from ci_evals.scoring.merge import merge
from ci_evals.scoring.selectors import check_names


def merge_runs(settings: MergeSettings) -> None:
    """Merges, writes every report, and exits as the gate decides.

    Raises:
        UsageError: results are not there, cannot be read or do not belong together; nothing is written then.
    """
    policy = read_policy(settings)
    places = Places(settings.output_dir, settings.junit)
    places.check()
    legs = read_legs(settings.results)
    redactor = Redactor([*environment_keys(os.environ), settings.github_token or ""])
    actions.mask(redactor, os.environ)
    remember(redactor)
    try:
        merged = merge(legs, expected=settings.legs)
    except ValidationError as error:
        files = ", ".join(leg.file for leg in legs)
        raise UsageError(f"{files}: times or amounts of these runs do not go together") from error
    ending = merged.ending
    if not ending.incomplete and (problem := _unknown_name(policy, merged.card.suites)):
        if _all_told(merged.card.suites):
            raise UsageError(problem)
        ending = replace(ending, incomplete=(problem,))
    skipped = merged.info.status == "skipped"
    baseline = Held() if skipped else baseline_of(settings, Platform.of(settings, os.environ))
    options = {"config": merged.info.config | in_force(settings), "baseline_note": baseline.note}
    info = redactor.model(merged.info.model_copy(update=options))
    before = redactor.model(baseline.results) if baseline.results else None
    console = error_console(os.environ)
    for line in (*(f"warning: {warning}" for warning in info.warnings), info.baseline_note):
        if line:
            console.say(line)
    results = conclude(merged.card, info, policy, ending, before)
    sys.exit(publish(results, places, console, before))


def read_legs(paths: Sequence[Path]) -> list[Leg]:
    """The results that the paths stand for, each file once.

    Raises:
        UsageError: with every path that holds none, and every file that cannot be read.
    """
    legs: list[Leg] = []
    problems = []
    seen: set[Path] = set()
    for path in paths:
        try:
            files = _files(path)
        except UsageError as error:
            problems.append(str(error))
            continue
        for file in files:
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            try:
                legs.append(Leg(str(file), read_clean(file)))
            except UsageError as error:
                problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))
    return legs


def _files(path: Path) -> list[Path]:
    """The results files that a path stands for: itself, the one in it, or those in the folders in it."""
    if not path.exists():
        raise UsageError(
            f"{path}: there is no such file or folder; if the legs' artifacts were to be in it, "
            "no leg has left any"
        )
    if not path.is_dir():
        return [path]
    if (path / RESULTS).is_file():
        return [path / RESULTS]
    try:
        found = [folder / RESULTS for folder in sorted(path.iterdir())]
        found = [file for file in found if file.is_file()]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not found:
        raise UsageError(
            f"{path}: there is no {RESULTS} in it, nor in a folder right below it; name results "
            "files, or the folder that actions/download-artifact left them in"
        )
    return found


def _unknown_name(policy: Policy, suites: Sequence[SuiteResult]) -> str | None:
    """What a floor or a drop names that is in none of the suites."""
    try:
        check_names("--thresholds", policy.thresholds, suites)
        check_names("--max-drop", policy.max_drops, suites)
    except UsageError as error:
        return str(error)
    return None


def _all_told(suites: Sequence[SuiteResult]) -> bool:
    """Whether results tell all names there are: categories and rules are told by the verdicts of trials."""
    tests = [test for suite in suites for test in suite.tests]
    return all(test.trials and all(trial.findings for trial in test.trials) for test in tests)
