"""Runs of agents whose tests pass at known rates, as artifacts leave them in a folder."""

from datetime import timedelta
from pathlib import Path
from random import Random

import builders as build
import report_texts

from ci_evals.domain.results.run import Git, Results

REPOSITORY = "octo/agent"


def run(
    number: int,
    rates: tuple[float, ...] = (1.0,) * 4,
    *,
    trials: int = 3,
    branch: str = "main",
    commit: str | None = None,
    pull_request: int | None = None,
    seed: str = "",
    **info,
) -> Results:
    """The run that began `number` hours after the first one."""
    rng = Random(f"{seed} {number}")
    tests = []
    for index, rate in enumerate(rates):
        played = []
        for trial in range(1, trials + 1):
            outcome = "passed" if rng.random() < rate else "failed"
            played.append(build.trial_result(trial, findings=(build.finding(outcome),)))
        tests.append(build.test_result(f"Test {index}", digest=f"{index}" * 64, trials=tuple(played)))
    ref = f"refs/pull/{pull_request}/merge" if pull_request else f"refs/heads/{branch}"
    git = Git(commit=commit or f"{number:040x}", ref=ref, repository=REPOSITORY, pull_request=pull_request)
    info = {
        "id": f"run-{number}",
        "started_at": build.STARTED_AT + timedelta(hours=number),
        "git": git,
        "config": {"provider": "openai", "minScore": 80},
    } | info
    return build.results(build.suite_result("Refunds", *tests), run=build.run_info(**info))


def store(folder: Path, *runs: Results) -> Path:
    """Write each run as an artifact is unpacked: a folder of its name with the file."""
    for results in runs:
        place = folder / f"artifact-{results.run.id}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "_results.json").write_text(report_texts.results_json_text(results))
    return folder
